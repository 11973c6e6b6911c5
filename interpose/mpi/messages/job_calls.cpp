// Wrappers of MPI functions that start and end MPI, and of functions that set an error handler.

#include "interpose/mpi/left_memory.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/job.h"
#include "runtime/base/options.h"

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): what follows is C

namespace {

// Whether hpe raises the level of thread support to MPI_THREAD_MULTIPLE for a thread of its own: if the MPI library
// does not call hpe while it waits (message_progress.h).
bool raises_level() { return !calls_while_it_waits() && hpe::options::valid_in_environment().mpi_pipeline; }

// `level`: the level that the program has asked for; used if hpe has raised it.
int begun(int result, bool raised, int level) {
  if (result != MPI_SUCCESS) return result;
  if (!raised) HPE_REAL(Query_thread)(&level);
  left_memory::decide();
  job::begin(level);
  return result;
}

}  // namespace

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  const bool raised = raises_level();
  return begun(raised ? HPE_REAL(Init_thread)(argc, argv, MPI_THREAD_MULTIPLE, &provided) : HPE_REAL(Init)(argc, argv),
               raised, MPI_THREAD_SINGLE);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const bool raised = raises_level();
  return begun(HPE_REAL(Init_thread)(argc, argv, raised ? MPI_THREAD_MULTIPLE : required, provided), raised, required);
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
