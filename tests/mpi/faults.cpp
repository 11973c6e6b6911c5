// A rank that goes wrong, for faults_test.py: faults <what> <host|device>. One memory gives what the other does.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "hpe/hpe.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) return 2;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int n = 1 << 20;
  std::vector<char> host(n);
  const hpe::array<char> device(n);
  char* const p = std::strcmp(argv[2], "host") == 0 ? host.data() : device.data();
  std::memset(p, 1, n);
  MPI_Barrier(MPI_COMM_WORLD);

  if (std::strcmp(argv[1], "killed") == 0) {
    // In the middle: one part has arrived, the rest never does.
    if (rank == 1) {
      MPI_Send(p, n / 2, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      std::raise(SIGKILL);
    }
    MPI_Recv(p, n / 2, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (std::strcmp(argv[1], "truncated") == 0) {
    if (rank == 1) MPI_Send(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(p, n / 2, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (std::strcmp(argv[1], "past-the-end") == 0) {
    if (rank == 1) MPI_Send(p + 1, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::puts("went on");
  MPI_Finalize();
  return 0;
}
