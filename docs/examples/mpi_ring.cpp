// Each rank sends a vector that a kernel has written on a device to the next rank of a
// ring. The program passes device pointers to MPI.

#include <mpi.h>

#include <cstdio>
#include <hpe/hpe.hpp>

#include "kernels.h"

int main(int argc, char** argv) try {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int right = (rank + 1) % ranks;
  const int left = (rank + ranks - 1) % ranks;

  const hpe::module kernels("./libkernels.so");
  const hpe::kernel<fill_parameters> fill(kernels, "fill");
  const hpe::kernel<saxpy_parameters> saxpy(kernels, "saxpy");
  constexpr int count = 1 << 20;

  hpe::array<float> mine(count);
  hpe::array<float> received(count);
  hpe::launch(fill, hpe::grid(64), {mine.data(), count, 1000.0F * rank}, hpe::out(mine));
  // MPI_Sendrecv waits for the kernel.
  MPI_Sendrecv(mine.data(), count, MPI_FLOAT, right, 0, received.data(), count, MPI_FLOAT,
               left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  // The kernel runs after the message has arrived in `received`.
  hpe::launch(saxpy, hpe::grid(64), {received.data(), mine.data(), count, 1},
              hpe::in(received), hpe::inout(mine));

  hpe::array<float> sum(count);
  MPI_Reduce(mine.data(), sum.data(), count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d ranks: sum[5] = %g\n", ranks, sum[5]);
  MPI_Finalize();
  return 0;
} catch (const hpe::error& failure) {
  std::fprintf(stderr, "%s: %s\n", hpeStatusName(failure.status()), failure.what());
  return 1;
}
