# Builds man pages and completion for bash, zsh and fish from the output of the hpe command. Builds nothing if there is
# no Python, or in builds with sanitizers, which are not installed.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_FOUND OR HPE_SANITIZE)
  return()
endif()

set(maker ${PROJECT_SOURCE_DIR}/cmake/manual.py)
set(man ${PROJECT_BINARY_DIR}/man)
set(completions ${PROJECT_BINARY_DIR}/completions)
set(made ${PROJECT_BINARY_DIR}/manual.stamp)
add_custom_command(OUTPUT ${made}
  COMMAND Python3::Interpreter ${maker} $<TARGET_FILE:hpe-command> man ${man}
  COMMAND Python3::Interpreter ${maker} $<TARGET_FILE:hpe-command> completion ${completions}
  COMMAND ${CMAKE_COMMAND} -E touch ${made}
  DEPENDS hpe-command ${maker}
  COMMENT "Man pages and completion"
  VERBATIM)
add_custom_target(hpe-manual ALL DEPENDS ${made})

install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${completions}/bash/hpe DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/zsh/_hpe DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completions}/fish/hpe.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
