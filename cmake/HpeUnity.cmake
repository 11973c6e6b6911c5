# Unity builds: the compiler compiles the files of a folder together, and so reads their headers only once. A complete
# build of libraries and programs then takes about half of the time, but a change of one file recompiles its whole
# folder.
#
#   HPE_UNITY   ON (default): compile libraries and programs in this way. Tests and benchmarks are always compiled file by file
option(HPE_UNITY "Compile the files of a folder together: faster complete builds, slower rebuilds" ON)

# The largest number of files that are compiled together, so that all cores of a larger machine are busy.
set(HPE_UNITY_MOST 12)

# hpe_unity() applies HPE_UNITY to all targets. It must be called after all targets are defined. CMake compiles files
# with options or definitions of their own, and files with the property SKIP_UNITY_BUILD_INCLUSION, one by one.
function(hpe_unity)
  if(NOT HPE_UNITY)
    return()
  endif()
  hpe_targets(targets)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(folder ${target} SOURCE_DIR)
    if(NOT type MATCHES "_LIBRARY|EXECUTABLE" OR type STREQUAL "INTERFACE_LIBRARY" OR folder MATCHES "^${PROJECT_SOURCE_DIR}/(tests|bench)(/|$)")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    set(folders "")
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
      if(NOT source MATCHES "\\.cpp$")
        continue()
      endif()
      cmake_path(GET source PARENT_PATH parent)
      string(MAKE_C_IDENTIFIER ${parent} parent)
      list(APPEND folders ${parent})
      list(APPEND files_${parent} ${source})
    endforeach()
    list(REMOVE_DUPLICATES folders)
    foreach(parent ${folders})
      set(number 0)
      foreach(source ${files_${parent}})
        math(EXPR group "${number} / ${HPE_UNITY_MOST}")
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${parent}_${group})
        math(EXPR number "${number} + 1")
      endforeach()
      unset(files_${parent})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # g++ treats an included .cpp file as a header, in which a class must not contain types of an unnamed namespace.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endforeach()
endfunction()
