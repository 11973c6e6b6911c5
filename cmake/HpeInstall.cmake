# Defines what `cmake --install` installs: the headers, the manual, the examples of the tutorial, the JSON schemas, the
# library, the hpe command with its benchmarks, and the files by which other projects find hpe (find_package(hpe),
# pkg-config hpe). hpe-softd and the kernel libraries, which the library starts and loads, are installed by the
# CMakeLists.txt files that build them.
#
# The components are dev, doc, benchmarks, mpi_programs, and runtime for everything else. HpePackage.cmake makes Debian
# packages of runtime, dev and doc.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/hpe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(DIRECTORY docs/examples docs/schemas DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc PATTERN .clang-format EXCLUDE)
# Installs the web site if scripts/docs has built it, else the pages from which the site is built.
install(CODE "set(site \"${PROJECT_SOURCE_DIR}/build/docs/site\")
  set(sources \"${PROJECT_SOURCE_DIR}\")
  set(place \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")" COMPONENT doc)
install(CODE [[
  if(EXISTS ${site}/index.html)
    file(INSTALL ${site}/ DESTINATION ${place}/html)
  else()
    file(INSTALL ${sources}/README.md ${sources}/CHANGELOG.md DESTINATION ${place})
    file(INSTALL ${sources}/docs/ DESTINATION ${place}/docs FILES_MATCHING PATTERN *.md PATTERN *.svg PATTERN *.png
      PATTERN examples EXCLUDE)
  endif()]] COMPONENT doc)

install(TARGETS hpe EXPORT hpe-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT dev)
if(TARGET hpe-mpi)
  # The file name under which `hpe run` preloads the library.
  install(TARGETS hpe-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(hpe-mpi PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
endif()

# BUILD_WITH_INSTALL_RPATH, here and elsewhere: programs in the build tree find their libraries in the same way as
# installed programs do. Otherwise, CMake would write a run path that ends in a colon, and the dynamic linker would
# search the working directory.

# `hpe bench` looks for the benchmarks in the folder of the hpe command.
set(benchmark_programs "")
if(HPE_BUILD_BENCH)
  get_property(benchmarks DIRECTORY bench PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${benchmarks})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      list(APPEND benchmark_programs ${target})
    endif()
  endforeach()
endif()
file(RELATIVE_PATH libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(same_places OFF)
if(libraries STREQUAL "../lib")
  set(same_places ON)
endif()
# With this run path, benchmarks that are CUDA programs find hpe's CUDA runtime, not NVIDIA's, also without `hpe run`.
set_target_properties(hpe-command ${benchmark_programs} PROPERTIES
  INSTALL_RPATH "$ORIGIN/${libraries};$ORIGIN/${libraries}/hpe/cudart" BUILD_WITH_INSTALL_RPATH ${same_places})
install(TARGETS hpe-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(benchmark_programs)
  install(TARGETS ${benchmark_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT benchmarks)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hpe)
install(EXPORT hpe-targets NAMESPACE hpe:: FILE hpeConfig.cmake DESTINATION ${package} COMPONENT dev)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hpeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hpeConfigVersion.cmake DESTINATION ${package} COMPONENT dev)

# The prefix is relative, so that the installed tree can be moved.
file(RELATIVE_PATH prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/hpe.pc.in ${PROJECT_BINARY_DIR}/hpe.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hpe.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
