# axir_add_model(TARGET FILE
#                [NAME name] [TARGET_CPU cpus...] [TARGET_TRIPLE triple] [OPT_LEVEL 0..3]
#                [ERRORS exceptions|status] [EMBED_LIMIT bytes] [BATCH rows...])
#
# Adds a static library TARGET with the model in FILE, a bundle (.axir) or a saved module (.mlir),
# which is written as C++ when the project is built, and again when FILE changes. Programs that
# link it include `NAME.hpp`, or `NAME.h` for C; NAME is that of the target by default. The options
# are those of `axir compile --emit cpp`. Parameters that are not embedded lie in
# ${CMAKE_CURRENT_BINARY_DIR}/NAME.safetensors.
#
# AXIR_EXECUTABLE names the program `axir`, where it is not found on PATH.
include_guard(GLOBAL)
# In the Python package this file lies in lib/python3.x/site-packages/axir/runtime/cpp/cmake.
cmake_path(APPEND CMAKE_CURRENT_LIST_DIR ../../../../../../../bin OUTPUT_VARIABLE beside_python)
cmake_path(NORMAL_PATH beside_python)
set(AXIR_BESIDE_PYTHON "${beside_python}" CACHE INTERNAL "")
unset(beside_python)
set(AXIR_WRITE_MODEL "${CMAKE_CURRENT_LIST_DIR}/AxirWriteModel.cmake" CACHE INTERNAL "")

function(axir_add_model target file)
  set(single NAME TARGET_TRIPLE OPT_LEVEL ERRORS EMBED_LIMIT)
  cmake_parse_arguments(PARSE_ARGV 2 given "" "${single}" "TARGET_CPU;BATCH")
  if(DEFINED given_UNPARSED_ARGUMENTS OR DEFINED given_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "axir_add_model(${target}): cannot understand "
      "${given_UNPARSED_ARGUMENTS}${given_KEYWORDS_MISSING_VALUES}; the options are "
      "${single} TARGET_CPU BATCH, each with a value.")
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  find_program(AXIR_EXECUTABLE axir HINTS ${AXIR_BESIDE_PYTHON} ENV VIRTUAL_ENV PATH_SUFFIXES bin
    DOC "The program axir, which writes models as C++.")
  if(NOT AXIR_EXECUTABLE)
    message(FATAL_ERROR "axir_add_model(${target}): there is no program axir on PATH.\n"
      "Install it (pip install axir), or name it: -DAXIR_EXECUTABLE=/path/to/bin/axir")
  endif()
  if(NOT DEFINED given_NAME)
    set(given_NAME ${target})
  endif()

  set(options --name ${given_NAME})
  foreach(option TARGET_TRIPLE OPT_LEVEL ERRORS EMBED_LIMIT)
    if(DEFINED given_${option})
      string(TOLOWER --${option} flag)
      string(REPLACE _ - flag ${flag})
      string(REPLACE --opt-level -O flag ${flag})
      list(APPEND options ${flag} ${given_${option}})
    endif()
  endforeach()
  if(DEFINED given_BATCH)
    list(JOIN given_BATCH , rows)
    list(APPEND options --batch ${rows})
  endif()

  # By default as `axir compile` chooses: levels of x86-64.
  set(machine ${CMAKE_HOST_SYSTEM_PROCESSOR})
  if(DEFINED given_TARGET_TRIPLE)
    set(machine ${given_TARGET_TRIPLE})
  endif()
  if(NOT DEFINED given_TARGET_CPU AND machine MATCHES "^(x86_64|amd64|AMD64)(-|$)")
    set(given_TARGET_CPU x86-64 x86-64-v3 x86-64-v4)
  endif()
  # Models for several CPUs have a source and an object file for each.
  set(path ${CMAKE_CURRENT_BINARY_DIR}/${given_NAME}_cpp/${given_NAME})
  set(parts ${path}_kernels.o)
  if(DEFINED given_TARGET_CPU)
    list(REMOVE_DUPLICATES given_TARGET_CPU)
    list(JOIN given_TARGET_CPU , cpus)
    list(APPEND options --target-cpu ${cpus})
    list(LENGTH given_TARGET_CPU count)
    if(count GREATER 1)
      set(parts)
      foreach(cpu ${given_TARGET_CPU})
        string(REGEX REPLACE "[^A-Za-z0-9_]" _ label ${cpu})
        list(APPEND parts ${path}_for_${label}.cpp ${path}_kernels_for_${label}.o)
      endforeach()
    endif()
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${given_NAME}_cpp)
  set(sources ${path}.cpp ${path}_c.cpp ${path}_data.cpp ${parts})
  add_custom_command(
    OUTPUT ${sources} ${path}.hpp ${path}.h
    COMMAND ${CMAKE_COMMAND} -DAXIR=${AXIR_EXECUTABLE} -DFILE=${file} -DPATH=${path}
      -DDATA=${CMAKE_CURRENT_BINARY_DIR} "-DOPTIONS=${options}"
      "-DFILES=${path}_data.cpp;${parts}" -P ${AXIR_WRITE_MODEL}
    DEPENDS ${file} ${AXIR_WRITE_MODEL}
    COMMENT "Writing ${given_NAME} as C++"
    VERBATIM)
  add_library(${target} STATIC ${sources} ${path}.hpp ${path}.h)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC ${folder})
  target_link_libraries(${target} PUBLIC axir::runtime)
endfunction()
