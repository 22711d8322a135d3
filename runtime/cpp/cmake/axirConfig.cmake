# What find_package(axir) finds: the headers as axir::runtime, and axir_add_model.
#
# It stands in an installed tree, or in the Python package, where `axir --cmake-dir` says so:
#   cmake -B build -Daxir_DIR="$(axir --cmake-dir)"
include(CMakeFindDependencyMacro)
find_dependency(Threads)
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/axirTargets.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/axirTargets.cmake")
elseif(NOT TARGET axir::runtime)
  add_library(axir::runtime INTERFACE IMPORTED)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH axir_package)
  set_target_properties(axir::runtime PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${axir_package}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES "Threads::Threads;$<$<PLATFORM_ID:Linux>:m>")
  unset(axir_package)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/AxirAddModel.cmake")
