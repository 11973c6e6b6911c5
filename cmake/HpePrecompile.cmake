# Precompiled headers: for most files, the compiler spends half of its time on the headers of the standard library. The
# project has three precompiled headers: for libraries; for programs, which are compiled with -fPIE; and for tests, with
# GoogleTest.
#
#   HPE_PRECOMPILE   OFF: each file includes its headers itself, as scripts/lint and editors need
option(HPE_PRECOMPILE "Precompile the headers of the standard library and of GoogleTest" ON)

# hpe_precompile() builds the precompiled headers, and makes all targets of the project use them. It must be called
# after all targets are defined.
#
# g++ accepts a precompiled header only under the options with which the header was compiled. Therefore, files and
# targets with their own options, such as -mavx2 or -fno-exceptions, use no precompiled header.
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
    # The header's name is in angle brackets, because CMake would otherwise write an absolute path, and ccache would not
    # find the files of other clones.
    set(header <cmake/precompiled.h>)
    if(kind STREQUAL "test")
      set(header <cmake/precompiled_test.h>)
    endif()
    target_precompile_headers(hpe-precompiled-${kind} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
    target_include_directories(hpe-precompiled-${kind} PRIVATE ${PROJECT_SOURCE_DIR})
    if(NOT kind STREQUAL "library")
      # The option with which programs are compiled: CMake passes -fPIE to programs, but not to this object library.
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
    # A target's COMPILE_OPTIONS also contain the options of the whole project, which are removed here. -O1 and -Wno
    # options are removed too, because g++ accepts a precompiled header at all levels of optimisation but -O0, and
    # whatever warnings are off.
    get_property(common DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY COMPILE_OPTIONS)
    list(FILTER options EXCLUDE REGEX "NOTFOUND$|-O1>?$|-Wno-[a-z-]+>?$")
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
