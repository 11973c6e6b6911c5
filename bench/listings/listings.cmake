# Builds the listings of chapter 5 of J. Cabezas's thesis as programs; each shows a way to program several devices under
# MPI.
add_library(hpe-listings-kernels MODULE listings/step.cpp)
target_include_directories(hpe-listings-kernels PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(hpe-listings-kernels PRIVATE -O2 -ffp-contract=off)
hpe_cuda_kernels(hpe-listings-kernels SOURCES listings/step.cu)

function(hpe_listing number source)
  add_executable(hpe-listing-${number} listings/experiment.cpp listings/${source})
  target_include_directories(hpe-listing-${number} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(hpe-listing-${number} SYSTEM PRIVATE ${HPE_MPI_INCLUDE})
  # hpe-mpi, which contains the wrappers of MPI functions, must precede the MPI library.
  target_link_libraries(hpe-listing-${number} PRIVATE hpe-app-modules hpe-mpi hpe ${MPI_C_LIBRARIES})
  target_compile_options(hpe-listing-${number} PRIVATE -ffp-contract=off)
  target_compile_definitions(hpe-listing-${number} PRIVATE OMPI_SKIP_MPICXX)
  add_dependencies(hpe-listing-${number} hpe-softd hpe-listings-kernels)
endfunction()

hpe_listing(5.1 host_buffers.cpp)
hpe_listing(5.2 shared_devices.cpp)
hpe_listing(5.3 one_address_space.cpp)
hpe_listing(5.4 device_messages.cpp)
