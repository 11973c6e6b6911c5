// A plugin that uses MPI, for a program without MPI. MPI modules of interpreters, for example mpi4py, are plugins of
// this kind.
#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
#include <dlfcn.h>
#include <mpi.h>

#include <cstring>
#include <vector>

#include "hpe/hpe.hpp"

// Weak references to functions of MPI 4. They are declared here because the mpi.h of an older MPI library does not
// declare them.
extern "C" {
extern char send_c __asm__("MPI_Send_c") __attribute__((weak));
extern char alltoall_init __asm__("MPI_Alltoall_init") __attribute__((weak));
}

namespace {

// Whether hpe reports functions of MPI 4 as present exactly if the MPI library has them. mpi4py makes these checks,
// too.
bool names_are_those_of_the_library() {
  constexpr bool has = MPI_VERSION >= 4;
  return (&send_c != nullptr) == has && (&alltoall_init != nullptr) == has &&
         (::dlsym(RTLD_DEFAULT, "MPI_Send_c") != nullptr) == has && ::dlsym(RTLD_DEFAULT, "MPI_Send") != nullptr;
}

}  // namespace

// Returns 0 if a message has arrived and the wrappers are in use.
extern "C" __attribute__((visibility("default"))) int run_plugin() {
  if (!names_are_those_of_the_library()) return 4;
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
