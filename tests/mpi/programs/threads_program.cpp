// Starts MPI with the level of thread support that the command line names, or by MPI_Init without one, and prints which
// level MPI tells. Programs choose by this level how many of their threads call MPI.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstring>

namespace {

struct level {
  const char* name;
  int value;
};
const std::array levels{level{"single", MPI_THREAD_SINGLE}, level{"funneled", MPI_THREAD_FUNNELED},
                        level{"serialized", MPI_THREAD_SERIALIZED}, level{"multiple", MPI_THREAD_MULTIPLE}};

const char* name_of(int value) {
  for (const level& each : levels)
    if (each.value == value) return each.name;
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  int provided = -1;
  if (argc < 2) {
    MPI_Init(&argc, &argv);
    MPI_Query_thread(&provided);
  }
  for (const level& each : levels)
    if (argc > 1 && std::strcmp(argv[1], each.name) == 0) MPI_Init_thread(&argc, &argv, each.value, &provided);
  int told = -1, rank = -1;
  MPI_Query_thread(&told);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("level %s, told %s\n", name_of(provided), name_of(told));
  MPI_Finalize();
}
