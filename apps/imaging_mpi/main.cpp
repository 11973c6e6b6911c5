// The imaging programs under mpirun. Each process is a member of the team, and uses one of the devices of its machine.
// The command `hpe` replaces itself by this program; argv[0] is the name of the command.

#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "apps/imaging/imaging_program.h"
#include "apps/imaging_mpi/imaging_ranks.h"

namespace {

int run(int argc, char** argv) {
  using namespace hpe::imaging;
  const std::string name = argv[0];
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const command& c) { return name == c.name; });
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (found == commands.end()) throw bad_input("this program is started only by `hpe`, as in mpirun -n 4 hpe rays");
    return found->run(make_ranks, argc, argv);
  } catch (const bad_input& wrong) {
    // All ranks have the same command line, so one rank prints the message.
    if (rank == 0) fmt::print(stderr, "hpe {}: {}\n", name, wrong.what());
    return hpe::command_line::usage_error;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = hpe::command_line::failed;
  try {
    status = run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hpe {}: {}\n", argv[0], e.what());
    MPI_Abort(MPI_COMM_WORLD, status);
  }
  MPI_Finalize();
  return status;
}
