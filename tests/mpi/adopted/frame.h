#pragma once

/// The frame of the programs in this folder, which run in two ranks on device memory that CUDA allocated: the checks,
/// and main(). Rank 0 prints "<name>: all right" if no check fails; each rank prints its failed checks.

#include <cuda.h>
#include <mpi.h>

#include <cstdio>

namespace adopted {

inline int wrong = 0;
inline int rank = 0;

inline void expect_at(bool right, const char* what, int line) {
  if (right) return;
  ++wrong;
  std::printf("wrong on rank %d, line %d: %s\n", rank, line, what);
}
#define EXPECT(condition) ::adopted::expect_at(condition, #condition, __LINE__)

/// Initialises MPI, and CUDA on the device with the number that device() returns; calls tests(). Returns the exit
/// status. `level`: the level of thread support.
inline int run(int argc, char** argv, const char* name, int (*device)(), void (*tests)(),
               int level = MPI_THREAD_SINGLE) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, device()) == CUDA_SUCCESS);
  cuCtxSetCurrent(context);
  tests();
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("%s: all right\n", name);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}

}  // namespace adopted
