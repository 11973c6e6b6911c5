// The implementation of library.h for MPI's standard ABI (soname libmpi_abi.so.1), which MPICH 5 and Intel MPI have.
// Handles are pointers; predefined handles are small numbers.

#include <cstdint>

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

static_assert(sizeof(MPI_Status) == 32, "the size that the standard ABI prescribes");

// MPICH and Intel MPI convert their integer handles to pointers, so the test is that of mpich.cpp. A pointer to an
// object has higher bits.
bool stands_for_many(MPI_Request request) noexcept { return reinterpret_cast<std::uintptr_t>(request) >> 30 == 1; }

}  // namespace hpe::interpose::mpi
