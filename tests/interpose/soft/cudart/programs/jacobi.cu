// Solves Laplace's equation on a plane by Jacobi's method, with several MPI ranks. Each rank has a slab of rows on its
// own device. The program passes device pointers to MPI for halos, the residual and the result. Rank 0 repeats the
// computation on the CPU; every cell and every residual must have the same bits.
//
//   jacobi [columns] [rows] [steps]
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/interpose/programs/check.h"

// Makes one step for the rows 1 to `rows`; rows 0 and rows + 1 belong to the neighbours. The largest change of a cell
// is stored as the bits of a float: for numbers that are not negative, the bits have the same order as the numbers.
__global__ void step(const float* from, float* to, int columns, int rows, unsigned* change) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  __shared__ unsigned largest;
  if (threadIdx.x == 0 && threadIdx.y == 0) largest = 0;
  __syncthreads();
  if (x > 0 && x < columns - 1 && y <= rows) {
    const float* const cell = from + y * columns + x;
    const float value = 0.25f * ((cell[-1] + cell[1]) + (cell[-columns] + cell[columns]));
    to[y * columns + x] = value;
    atomicMax(&largest, __float_as_uint(fabsf(value - *cell)));
  }
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) atomicMax(change, largest);
}

static float boundary(int x, int y) { return float((x * 7 + y * 13) % 101) / 10; }

static void fill(std::vector<float>& cells, int columns, int first_row, int all_rows) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int x = int(i) % columns, y = first_row + int(i) / columns;
    const bool edge = x == 0 || x == columns - 1 || y == 0 || y == all_rows - 1;
    cells[i] = edge ? boundary(x, y) : 0;
  }
}

// The computation on the CPU: returns the cells, followed by the change of each step.
static std::vector<float> serial(int columns, int rows, int steps) {
  std::vector<float> now(std::size_t(columns) * rows), changes;
  fill(now, columns, 0, rows);
  std::vector<float> next = now;
  for (int s = 0; s < steps; ++s) {
    float change = 0;
    for (int y = 1; y < rows - 1; ++y)
      for (int x = 1; x < columns - 1; ++x) {
        const float* const cell = &now[std::size_t(y) * columns + x];
        const float value = 0.25f * ((cell[-1] + cell[1]) + (cell[-columns] + cell[columns]));
        next[std::size_t(y) * columns + x] = value;
        change = std::max(change, std::fabs(value - *cell));
      }
    changes.push_back(change);
    std::swap(now, next);
  }
  now.insert(now.end(), changes.begin(), changes.end());
  return now;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int columns = argc > 1 ? std::atoi(argv[1]) : 200, rows = argc > 2 ? std::atoi(argv[2]) : 150,
            steps = argc > 3 ? std::atoi(argv[3]) : 60;
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(rank % devices));

  const int inner = rows - 2, first = inner * rank / ranks, mine = inner * (rank + 1) / ranks - first;
  std::vector<float> host(std::size_t(columns) * (mine + 2));
  fill(host, columns, first, rows);
  const std::size_t bytes = host.size() * sizeof(float);
  float *now, *next, *changes;
  CHECK(cudaMalloc(&now, bytes));
  CHECK(cudaMalloc(&next, bytes));
  CHECK(cudaMalloc(&changes, steps * sizeof *changes));
  CHECK(cudaMemcpy(now, host.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(next, host.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(changes, 0, steps * sizeof *changes));

  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
  const dim3 block(32, 8), grid((columns + 31) / 32, (mine + 7) / 8);
  for (int s = 0; s < steps; ++s) {
    step<<<grid, block>>>(now, next, columns, mine, reinterpret_cast<unsigned*>(changes + s));
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(nullptr));
    MPI_Allreduce(MPI_IN_PLACE, changes + s, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
    float* const last = next + std::size_t(columns) * mine;
    if (s % 2 == 0) {
      MPI_Sendrecv(next + columns, columns, MPI_FLOAT, above, 0, last + columns, columns, MPI_FLOAT, below, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Sendrecv(last, columns, MPI_FLOAT, below, 1, next, columns, MPI_FLOAT, above, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else {
      MPI_Request requests[4];
      MPI_Irecv(next, columns, MPI_FLOAT, above, 3, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(last + columns, columns, MPI_FLOAT, below, 2, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(next + columns, columns, MPI_FLOAT, above, 2, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(last, columns, MPI_FLOAT, below, 3, MPI_COMM_WORLD, &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    std::swap(now, next);
  }

  // Gathers the inner rows of all ranks into device memory of rank 0.
  std::vector<int> counts(ranks), places(ranks);
  for (int r = 0; r < ranks; ++r) {
    places[r] = columns * (1 + inner * r / ranks);
    counts[r] = columns * (1 + inner * (r + 1) / ranks) - places[r];
  }
  std::vector<float> all(std::size_t(columns) * rows);
  fill(all, columns, 0, rows);
  float* whole = nullptr;
  if (rank == 0) {
    CHECK(cudaMalloc(&whole, all.size() * sizeof(float)));
    CHECK(cudaMemcpy(whole, all.data(), all.size() * sizeof(float), cudaMemcpyHostToDevice));
  }
  MPI_Gatherv(now + columns, columns * mine, MPI_FLOAT, whole, counts.data(), places.data(), MPI_FLOAT, 0, MPI_COMM_WORLD);
  int status = 0;
  if (rank == 0) {
    CHECK(cudaMemcpy(all.data(), whole, all.size() * sizeof(float), cudaMemcpyDeviceToHost));
    all.resize(all.size() + steps);
    CHECK(cudaMemcpy(&all[all.size() - steps], changes, steps * sizeof(float), cudaMemcpyDeviceToHost));
    const std::vector<float> wanted = serial(columns, rows, steps);
    std::size_t at = 0;
    while (at < all.size() && std::memcmp(&all[at], &wanted[at], sizeof(float)) == 0) ++at;
    std::printf("last change %a\n", all.back());
    if (at < all.size()) std::printf("at %zu of %zu: %a, not %a\n", at, all.size(), all[at], wanted[at]);
    std::printf("jacobi on %d ranks: %s\n", ranks, at == all.size() ? "right" : "WRONG");
    status = at == all.size() ? 0 : 1;
    CHECK(cudaFree(whole));
  }
  CHECK(cudaFree(now));
  CHECK(cudaFree(next));
  CHECK(cudaFree(changes));
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
