include(GoogleTest)

# hpe_discover_tests(<target> [options of gtest_discover_tests]) defines a CTest test for each test of a GoogleTest
# program.
#
# gtest_discover_tests runs each program once to list its tests, and by default waits at most 5 s. A shared machine can
# stall for longer, and the whole build would then fail; this function waits longer.
#
# gtest_discover_tests also loses all variables of PROPERTIES ENVIRONMENT except the first (CMake 3.25). Therefore, a
# file that CTest includes after the list of tests sets the variables if there are several. This function uses the
# argument TEST_LIST; callers must not pass it.
function(hpe_discover_tests target)
  set(environment "")
  set(others "")
  set(in_environment FALSE)
  foreach(word IN LISTS ARGN)
    if(word STREQUAL "ENVIRONMENT")
      set(in_environment TRUE)
    elseif(in_environment AND word MATCHES "^[A-Za-z_][A-Za-z_0-9]*=")
      list(APPEND environment "${word}")
    else()
      set(in_environment FALSE)
      list(APPEND others "${word}")
    endif()
  endforeach()
  if(environment STREQUAL "")
    gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 ${others})
    return()
  endif()
  string(MD5 id "${target} ${ARGN}")
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 TEST_LIST hpe_tests_${id} ${others})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/environment_${id}.cmake)
  file(WRITE ${file}
    "if(hpe_tests_${id})\n  set_tests_properties(\${hpe_tests_${id}} PROPERTIES ENVIRONMENT [==[${environment}]==])\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# hpe_discover_tests_with_clock(<target> <filter> ... PROPERTIES ...) gives the label "clock" to the tests that the
# filter matches. Tests with this label measure time, or expect an operation to end within a time that a machine with
# other users may exceed. `scripts/test --second-try` runs only these tests a second time. Tests without the label do
# not depend on time.
function(hpe_discover_tests_with_clock target clock)
  hpe_discover_tests(${target} TEST_FILTER "-${clock}" ${ARGN})
  hpe_discover_tests(${target} TEST_FILTER "${clock}" ${ARGN} LABELS clock)
endfunction()
