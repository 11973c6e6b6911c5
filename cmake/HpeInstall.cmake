# What `cmake --install` leaves: the headers, the examples of the tutorial, the schemas of JSON, the library, the hpe command with its
# benchmarks, and how other projects find them (find_package(hpe), pkg-config hpe). What the library starts and loads
# (hpe-softd, libhpe-kernels.so) is installed where it is built, because the library knows where it looks for it.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/hpe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY docs/examples docs/schemas DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN .clang-format EXCLUDE)

install(TARGETS hpe EXPORT hpe-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET hpe-mpi)
  install(TARGETS hpe-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(hpe-mpi PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
endif()

# BUILD_WITH_INSTALL_RPATH, here and elsewhere: what is in the build tree finds its libraries as what is installed does.
# The path that CMake would write there instead ends in a colon, with which the dynamic linker searches the working folder.

# `hpe bench` finds the benchmarks beside itself.
set(programs hpe-command)
if(HPE_BUILD_BENCH)
  get_property(benchmarks DIRECTORY bench PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${benchmarks})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND programs ${target})
    endif()
  endforeach()
endif()
file(RELATIVE_PATH libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(same_places OFF)
if(libraries STREQUAL "../lib")
  set(same_places ON)
endif()
set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}" BUILD_WITH_INSTALL_RPATH ${same_places})
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hpe)
install(EXPORT hpe-targets NAMESPACE hpe:: FILE hpeConfig.cmake DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hpeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hpeConfigVersion.cmake DESTINATION ${package})

# Relative, so that the tree may be moved.
file(RELATIVE_PATH prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/hpe.pc.in ${PROJECT_BINARY_DIR}/hpe.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hpe.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
