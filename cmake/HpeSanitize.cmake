# Builds with the sanitizers of g++ and Clang.
set(HPE_SANITIZE "" CACHE STRING "Sanitizers to build with, as in -fsanitize=: address,undefined or thread")

if(HPE_SANITIZE)
  add_compile_options(-fsanitize=${HPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(HPE_SANITIZE MATCHES "address,undefined")
    # AddressSanitizer finds accesses through null pointers and outside of objects. Files compile an eighth faster without
    # UndefinedBehaviorSanitizer's own checks for them.
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
  add_link_options(-fsanitize=${HPE_SANITIZE})
else()
  # Builds with a sanitizer allow warnings: with a sanitizer, g++ 12 reports faults in the standard library's own code.
  add_compile_options(-Werror)
endif()

# hpe_sanitize_less() leaves UndefinedBehaviorSanitizer out of the files of the tests, because it would not check the code that they
# test. The files then compile in two thirds of the time. Folders whose tests call inline functions of headers keep it. The
# function must be called after all targets are defined, and after hpe_precompile(), which uses no precompiled header for files
# with options of their own. This option leaves the headers valid.
function(hpe_sanitize_less)
  if(NOT HPE_SANITIZE MATCHES "undefined")
    return()
  endif()
  hpe_targets(targets)
  foreach(target ${targets})
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(sources ${target} SOURCES)
    if(NOT folder MATCHES "^${PROJECT_SOURCE_DIR}/tests/" OR folder MATCHES "/tests/(base|coherence|fuzz|memory|os|work)(/|$)" OR NOT sources)
      continue()
    endif()
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
      if(source MATCHES "^${PROJECT_SOURCE_DIR}/tests/.*\\.cpp$")
        set_property(SOURCE ${source} DIRECTORY ${folder} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=undefined)
      endif()
    endforeach()
  endforeach()
endfunction()
