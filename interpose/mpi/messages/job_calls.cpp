// Where a program's use of MPI begins and ends.

#include "interpose/mpi/messages/job.h"

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): what follows is C

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  const int result = HPE_REAL(Init)(argc, argv);
  if (result == MPI_SUCCESS) job::begin();
  return result;
}
HPE_ALSO_AS_PMPI(Init, (int*, char***))

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = HPE_REAL(Init_thread)(argc, argv, required, provided);
  if (result == MPI_SUCCESS) job::begin();
  return result;
}
HPE_ALSO_AS_PMPI(Init_thread, (int*, char***, int, int*))

int MPI_Finalize() {
  job::end();
  return HPE_REAL(Finalize)();
}
HPE_ALSO_AS_PMPI(Finalize, ())
}
