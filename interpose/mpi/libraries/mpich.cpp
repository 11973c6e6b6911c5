// The implementation of library.h for MPICH and for libraries with its ABI (soname libmpi.so.12): Intel MPI, Cray MPI,
// MVAPICH. Handles are integers.

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

// The two highest bits of a handle are the handle's kind. A request of kind 1 is a constant of MPICH, which several
// operations can have at the same time.
bool stands_for_many(MPI_Request request) noexcept { return static_cast<unsigned>(request) >> 30 == 1; }

}  // namespace hpe::interpose::mpi
