// Measures collective operations of MPI ranks on memory that cudaMalloc allocated. This is a plain CUDA and MPI
// program. MPI needs hpe for device pointers; run it as
//
//   mpirun -n N hpe run -- mpi_collectives-static [alltoall|allgather|bcast|gather|scatter|allreduce|reduce ...]
//
// Rank r uses GPU r modulo the number of GPUs. A size is the number of bytes that a rank sends to each other rank; a
// time is the median of the times of the slowest rank. Each measurement uses new data and poisoned receive buffers; if
// received data are wrong, the program ends.
#include <functional>
#include <string>

#include "mpi_bench.h"

namespace {

const std::size_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};

__global__ void fill_floats(float* p, std::size_t count, int add) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = static_cast<float>(i % 1000 + add);
}
__global__ void compare_floats(const float* p, std::size_t count, int ranks, unsigned long long* wrong) {
  const auto sum = static_cast<float>(ranks * (ranks - 1) / 2);
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    if (p[i] != static_cast<float>(ranks) * static_cast<float>(i % 1000) + sum) atomicAdd(wrong, 1ULL);
}

// Returns the time of one call on the slowest rank in microseconds, as the median of several rounds.
double time_of(const std::function<void()>& call, int n) {
  std::vector<double> times;
  for (int round = 0; round < 8; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now();
    for (int i = 0; i < n; ++i) call();
    const double mine = (now() - begin) / n * 1e6;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round > 0) times.push_back(slowest);
  }
  return median(times);
}

void report(const std::string& what, std::size_t bytes, double us, double bytes_moved) {
  if (rank() == 0) std::printf("%-10s %9zu bytes %9.2f us %9.2f GB/s\n", what.c_str(), bytes, us, bytes_moved / us / 1e3);
}

void measure(const std::string& what, const buffers& device, std::size_t bytes, int ranks) {
  const int count = static_cast<int>(bytes);
  const auto all = static_cast<std::size_t>(ranks) * bytes;
  const auto mine = static_cast<std::uint64_t>(rank());
  const std::uint64_t seed = next_seed();
  const auto seed_of = [&](std::uint64_t r) { return seed + (r << 40); };
  const int n = bytes <= 1 << 20 ? 30 : 4;
  const double others = static_cast<double>(bytes) * (ranks - 1);
  const auto expect = [&](std::uint64_t block, std::uint64_t from, std::uint64_t block_there) {
    device.check(device.in + block * bytes, bytes, seed_of(from) + block_there * bytes, what.c_str());
  };
  device.prepare(all, seed_of(mine));
  if (what == "alltoall") {
    report(what, bytes, time_of([&] {
      MPI_Alltoall(device.out, count, MPI_BYTE, device.in, count, MPI_BYTE, MPI_COMM_WORLD);
    }, n), others);
    for (int r = 0; r < ranks; ++r) expect(r, r, mine);
  } else if (what == "allgather") {
    report(what, bytes, time_of([&] {
      MPI_Allgather(device.out, count, MPI_BYTE, device.in, count, MPI_BYTE, MPI_COMM_WORLD);
    }, n), others);
    for (int r = 0; r < ranks; ++r) expect(r, r, 0);
  } else if (what == "gather") {
    report(what, bytes, time_of([&] {
      MPI_Gather(device.out, count, MPI_BYTE, device.in, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }, n), others);
    if (mine == 0)
      for (int r = 0; r < ranks; ++r) expect(r, r, 0);
  } else if (what == "scatter") {
    report(what, bytes, time_of([&] {
      MPI_Scatter(device.out, count, MPI_BYTE, device.in, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    }, n), others);
    expect(0, 0, mine);
  } else if (what == "bcast") {
    unsigned char* const buffer = mine == 0 ? device.out : device.in;
    report(what, bytes, time_of([&] { MPI_Bcast(buffer, count, MPI_BYTE, 0, MPI_COMM_WORLD); }, n), others);
    if (mine != 0) expect(0, 0, 0);
  } else {
    auto* const out = reinterpret_cast<float*>(device.out);
    auto* const in = reinterpret_cast<float*>(device.in);
    const std::size_t floats = bytes / sizeof(float);
    fill_floats<<<512, 256>>>(out, floats, rank());
    CHECK(cudaDeviceSynchronize());
    const bool for_all = what == "allreduce";
    report(what, bytes, time_of([&] {
      if (for_all) MPI_Allreduce(out, in, static_cast<int>(floats), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      else MPI_Reduce(out, in, static_cast<int>(floats), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    }, n), static_cast<double>(bytes));
    unsigned long long* wrong = nullptr;
    CHECK(cudaMallocManaged(&wrong, sizeof *wrong));
    *wrong = 0;
    compare_floats<<<512, 256>>>(in, for_all || mine == 0 ? floats : 0, ranks, wrong);
    CHECK(cudaDeviceSynchronize());
    if (*wrong != 0) std::printf("%s of %zu bytes: %llu are wrong\n", what.c_str(), bytes, *wrong), MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK(cudaFree(wrong));
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int gpus = 0;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(cudaGetDeviceCount(&gpus));
  CHECK(cudaSetDevice(rank() % gpus));
  std::vector<std::string> wanted(argv + 1, argv + argc);
  if (wanted.empty()) wanted = {"alltoall", "allgather", "bcast", "gather", "scatter", "allreduce", "reduce"};
  buffers device;
  device.allocate();
  for (const std::string& what : wanted)
    for (const std::size_t bytes : sizes) measure(what, device, bytes, ranks);
  MPI_Finalize();
}
