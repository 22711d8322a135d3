# Writes a model as C++ while a project is built; `axir_add_model` calls it.
#
# What a build needs has to be known before: a file that the model has no use for is made all the
# same, without content.
cmake_path(GET PATH PARENT_PATH folder)
cmake_path(GET PATH FILENAME name)
file(REMOVE_RECURSE ${folder})
execute_process(
  COMMAND ${AXIR} compile ${FILE} --emit cpp ${OPTIONS} -o ${folder}
  RESULT_VARIABLE failure
  ERROR_VARIABLE told)
if(failure)
  message(FATAL_ERROR "axir cannot write ${FILE} as C++:\n${told}")
endif()
file(TOUCH ${FILES})
if(EXISTS ${PATH}.safetensors)
  file(COPY_FILE ${PATH}.safetensors ${DATA}/${name}.safetensors ONLY_IF_DIFFERENT)
endif()
