# Defines the Debian packages that `cpack` makes in a build folder (scripts/package): hpe, hpe-dev and hpe-doc, from the
# components that HpeInstall.cmake names. The packages do not contain the benchmarks, which measure a build and need
# libraries of its compilers. They do not contain hpe-imaging-mpi, hpe-rtm-mpi and hpe-scan-mpi either, which are bound
# to the MPI library of the build.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hpe)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "hpe developers <hpe@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev doc)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME hpe)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME hpe-dev)
set(CPACK_DEBIAN_DOC_PACKAGE_NAME hpe-doc)

set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The hpe command, its libraries, and soft devices, which run kernels on CPU
threads where there is no GPU. 'hpe run' puts hpe into CUDA and MPI programs.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# dpkg-shlibdeps finds the packages of the libraries that hpe's files link. hpe's own libraries find each other by
# $ORIGIN.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "hpe-doc, libcuda1, openmpi-bin")

set(CPACK_COMPONENT_DEV_DESCRIPTION "C and C++ headers, and the files by which CMake (find_package) and pkg-config find hpe.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "hpe (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "hpe-doc, g++, cmake, pkg-config")

set(CPACK_COMPONENT_DOC_DESCRIPTION "The manual: tutorial, how-to pages, reference and explanations, with the example
programs.")
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)

# A package with a shared library must tell dpkg which package contains the library, and that dpkg must update the
# linker's cache.
set(control ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${control}/shlibs "libhpe ${PROJECT_VERSION_MAJOR} hpe (>= ${PROJECT_VERSION})\nlibhpe-mpi ${PROJECT_VERSION_MAJOR} hpe (>= ${PROJECT_VERSION})\n")
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_STRICT_PERMISSION ON)

file(WRITE ${control}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hpe

Files: *
Copyright: the authors of hpe
License: Apache-2.0
 The text of the license is in /usr/share/common-licenses/Apache-2.0.
Comment: libhpe-fft-fftw.so links FFTW, which is under the GNU General Public
 License, version 2 or later: /usr/share/common-licenses/GPL-2.
")
foreach(component runtime dev doc)
  string(TOUPPER ${component} name)
  install(FILES ${control}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME}
    COMPONENT ${component})
endforeach()
include(CPack)
