# Precompiled headers: half the time of most files goes into reading the standard library. There are three precompiled
# headers for the whole project: for libraries, for programs, whose code is addressed differently, and for tests, with
# GoogleTest.
#
#   HPE_PRECOMPILE   OFF: each file reads its own headers, as scripts/lint and editors need
option(HPE_PRECOMPILE "Precompile the headers of the standard library and of GoogleTest" ON)

# hpe_precompile(): makes the precompiled headers, and makes all targets of the project use them. Must be called last.
#
# g++ accepts a precompiled header only under the options with which it made the header. So files and targets with
# options of their own, such as -mavx2 or -fno-exceptions, use no precompiled header.
function(hpe_precompile)
  if(NOT HPE_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp.new "// Without this file the precompiled headers would belong to no target.\n")
  file(COPY_FILE ${PROJECT_BINARY_DIR}/precompiled.cpp.new ${PROJECT_BINARY_DIR}/precompiled.cpp ONLY_IF_DIFFERENT)
  set(kinds library program)
  if(HPE_BUILD_TESTS)
    list(APPEND kinds test)
  endif()
  foreach(kind ${kinds})
    add_library(hpe-precompiled-${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
    # In angle brackets, because CMake would otherwise write an absolute path, and ccache would find no files of other
    # clones.
    set(header <cmake/precompiled.h>)
    if(kind STREQUAL "test")
      set(header <cmake/precompiled_test.h>)
    endif()
    target_precompile_headers(hpe-precompiled-${kind} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
    target_include_directories(hpe-precompiled-${kind} PRIVATE ${PROJECT_SOURCE_DIR})
    if(NOT kind STREQUAL "library")
      # The same option as in programs: CMake gives -fPIE only to programs, not to this object library.
      set_target_properties(hpe-precompiled-${kind} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(hpe-precompiled-${kind} PRIVATE -fPIE)
    endif()
  endforeach()
  if(HPE_BUILD_TESTS)
    target_link_libraries(hpe-precompiled-test PRIVATE GTest::gtest)
  endif()
  hpe_targets(targets)
  foreach(target ${targets})
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(type ${target} TYPE)
    get_target_property(options ${target} COMPILE_OPTIONS)
    get_target_property(sources ${target} SOURCES)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(target MATCHES "^hpe-precompiled-" OR NOT type MATCHES "LIBRARY|EXECUTABLE" OR type STREQUAL "INTERFACE_LIBRARY")
      continue()
    endif()
    # A target's COMPILE_OPTIONS also contain the options of the whole project; they are removed here. -Wno options are
    # removed too, because g++ accepts a precompiled header whatever warnings are off.
    get_property(common DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY COMPILE_OPTIONS)
    list(FILTER options EXCLUDE REGEX "NOTFOUND$|-Wno-[a-z-]+>?$")
    list(REMOVE_ITEM options ${common})
    if(options)
      continue()
    endif()
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
      get_source_file_property(own ${source} DIRECTORY ${folder} COMPILE_OPTIONS)
      if(own)
        set_source_files_properties(${source} DIRECTORY ${folder} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
    if(NOT type STREQUAL "EXECUTABLE")
      set(kind library)
    elseif("${libraries}" MATCHES "GTest::")
      set(kind test)
    else()
      set(kind program)
    endif()
    target_precompile_headers(${target} REUSE_FROM hpe-precompiled-${kind})
  endforeach()
endfunction()
