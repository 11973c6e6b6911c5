// A plugin that loads MPI into a program without MPI, like the MPI modules of interpreters.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <cstring>
#include <vector>

#include "hpe/hpe.hpp"

// 0 if a message arrived and the wrappers were in use.
extern "C" __attribute__((visibility("default"))) int run_plugin() {
  MPI_Init(nullptr, nullptr);
  constexpr int n = 100000;
  const hpe::array<char> from(n);
  const hpe::array<char> to(n);
  hpeMemset(from.data(), 7, n);
  MPI_Sendrecv(from.data(), n, MPI_CHAR, 0, 0, to.data(), n, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  hpeStatistics statistics{};
  hpeGetStatistics(&statistics);
  const bool arrived = to[0] == 7 && to[n - 1] == 7;
  MPI_Finalize();
  if (!arrived) return 1;
  return statistics.bytes_staged >= 2 * n ? 0 : 2;
}
