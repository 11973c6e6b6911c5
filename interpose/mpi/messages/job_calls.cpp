// Wrappers of MPI functions that start and end MPI, and of functions that set an error handler.

#include <algorithm>
#include <atomic>
#include <csignal>

#include "interpose/mpi/checks/checked_call.h"
#include "interpose/mpi/left_memory.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/pending.h"
#include "runtime/base/options.h"

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): what follows is C

namespace {

// Whether hpe raises the level of thread support to MPI_THREAD_MULTIPLE for a thread of its own: if the MPI library
// does not call hpe while it waits (message_progress.h).
bool raises_level() { return !calls_while_it_waits() && hpe::options::valid_in_environment().mpi_pipeline; }

// The level of thread support that the program may use; MPI may support more for hpe. Negative: what MPI supports.
std::atomic<int> level_of_program{-1};

// `asked`: the level that the program has asked for.
int begun(int result, bool raised, int asked) {
  if (result != MPI_SUCCESS) return result;
  int level = MPI_THREAD_SINGLE;
  HPE_REAL(Query_thread)(&level);
  if (raised) level_of_program = level = std::min(level, asked);
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
  const int result =
      begun(HPE_REAL(Init_thread)(argc, argv, raised ? MPI_THREAD_MULTIPLE : required, provided), raised, required);
  if (result == MPI_SUCCESS && raised) *provided = level_of_program;
  return result;
}

// A program that asked for less than MPI_THREAD_MULTIPLE may still use as many threads as this function tells.
int MPI_Query_thread(int* provided) {
  const int result = HPE_REAL(Query_thread)(provided);
  if (const int level = level_of_program; result == MPI_SUCCESS && level >= 0) *provided = level;
  return result;
}

int MPI_Finalize() {
  const checked_thread here;
  // A rank with findings ends with a status for which mpirun asks the other ranks to end, which must still report
  // theirs.
  if (hpe::interpose::message_checks::of_process() != nullptr) std::signal(SIGTERM, SIG_IGN);
  job::await_transfers();
  // The last chance to finish receives whose requests the program has freed. Their transfers end before the job does.
  pending_table::all().look_at_freed();
  job::end();
  pending_table::all().free_communicators();
  return HPE_REAL(Finalize)();
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  job::set_survives_errors();
  return HPE_REAL(Comm_set_errhandler)(comm, handler);
}
}
