// Passes device memory to MPI while work that uses the memory is still queued on a stream: rank 0 sends the result of a
// queued kernel, and rank 1 receives into memory that a queued copy has not read yet.
#include <mpi.h>
#include <unistd.h>

#include <vector>

#include "tests/interpose/programs/check.h"

__global__ void add(unsigned* p, std::size_t n, unsigned k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] += k;
}

// Delays the later work on the stream by 20 ms.
static void hold_up(cudaStream_t stream) {
  CHECK(cudaLaunchHostFunc(stream, [](void*) { usleep(20000); }, nullptr));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  bool good = true;
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{300001}}) {
    unsigned *p, *q;
    CHECK(cudaMalloc(&p, n * sizeof *p));
    CHECK(cudaMalloc(&q, n * sizeof *q));
    CHECK(cudaMemset(p, 0, n * sizeof *p));
    hold_up(stream);
    if (rank == 0) {
      add<<<8, 128, 0, stream>>>(p, n, 7);
      MPI_Send(p, int(n), MPI_UNSIGNED, 1, 5, MPI_COMM_WORLD);
    } else if (rank == 1) {
      CHECK(cudaMemcpyAsync(q, p, n * sizeof *p, cudaMemcpyDeviceToDevice, stream));  // must copy the old zeros
      MPI_Recv(p, int(n), MPI_UNSIGNED, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (std::size_t i = 0; i < n; i += n / 2 + 1) good = good && p[i] == 7 && q[i] == 0;
      good = good && p[n - 1] == 7 && q[n - 1] == 0;
    }
    CHECK(cudaFree(p));
    CHECK(cudaFree(q));
  }
  if (rank == 1) std::printf("queued work and MPI: %s\n", good ? "right" : "WRONG");
  CHECK(cudaStreamDestroy(stream));
  MPI_Finalize();
  return good ? 0 : 1;
}
