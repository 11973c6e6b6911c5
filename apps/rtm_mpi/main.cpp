// `hpe rtm model` and `hpe rtm migrate` under mpirun: groups of ranks compute different shots, and the ranks of a group
// have slabs of one grid.

#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "apps/command_line/program.h"
#include "apps/rtm/verbs.h"
#include "apps/rtm_mpi/mpi_team.h"

namespace {

using namespace hpe::rtm;

int run(int argc, char** argv) {
  mpi_team ranks(MPI_COMM_WORLD, parts_of(argc - 1, argv + 1));
  const std::string verb = argc > 1 ? argv[1] : "";
  return verb == "model" ? model_survey(argc - 1, argv + 1, ranks) : migrate_survey(argc - 1, argv + 1, ranks);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int status = hpe::command_line::guarded("hpe rtm", [&] {
    try {
      return run(argc, argv);
    } catch (...) {
      // Usually all ranks fail for the same reason. Rank 0 then prints the error, and its MPI_Abort ends the other
      // ranks before they print it too.
      if (rank != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
      throw;
    }
  });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
