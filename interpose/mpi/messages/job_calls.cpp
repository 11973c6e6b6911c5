// Wrappers of MPI functions that start and end MPI, and of functions that set an error handler.

#include "interpose/mpi/left_memory.h"
#include "interpose/mpi/messages/job.h"

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): what follows is C

namespace {

int begun(int result) {
  if (result != MPI_SUCCESS) return result;
  left_memory::decide();
  job::begin();
  return result;
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) { return begun(HPE_REAL(Init)(argc, argv)); }

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return begun(HPE_REAL(Init_thread)(argc, argv, required, provided));
}

int MPI_Finalize() {
  job::end();
  return HPE_REAL(Finalize)();
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  job::set_survives_errors();
  return HPE_REAL(Comm_set_errhandler)(comm, handler);
}
}
