// Measures messages between the GPUs of MPI ranks, in memory that cudaMalloc allocated: latency, bandwidth and a Jacobi
// solver. mpi_copies.cu measures the driver's copies between the same GPUs. This is a plain CUDA and MPI program. MPI
// needs hpe for device pointers; run it as
//
//   mpirun -n 2 hpe run -- mpi_bench-static [host|latency|exchange|pool|managed|bandwidth|strided|jacobi ...]
//
// Rank r uses GPU r modulo the number of GPUs; all parts except `jacobi` run between the first two ranks. The printed
// numbers are medians. Each measurement uses new data and poisoned receive buffers; if received data are wrong, the
// program ends.
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "mpi_bench.h"

namespace {

// Sends a message to the other rank and one back, n times; returns the microseconds for one message.
double ping_pong(void* out, void* in, std::size_t bytes, int n) {
  const int count = static_cast<int>(bytes);
  const double begin = now();
  for (int i = 0; i < n; ++i) {
    if (rank() == 0) MPI_Send(out, count, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, count, MPI_BYTE, 1 - rank(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank() == 1) MPI_Send(out, count, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
  return (now() - begin) / n / 2 * 1e6;
}

void latency(const buffers& device, const char* memory, std::size_t most = ~std::size_t{0}) {
  for (const std::size_t bytes : message_sizes) {
    if (bytes > most) continue;
    const std::uint64_t seed = next_seed();
    device.prepare(bytes, seed);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() > 1) continue;
    const int n = bytes <= 1 << 20 ? 100 : 10;
    std::vector<double> times;
    ping_pong(device.out, device.in, bytes, n);
    for (int i = 0; i < 11; ++i) times.push_back(ping_pong(device.out, device.in, bytes, n));
    device.check(device.in, bytes, seed, "a message");
    if (rank() == 0) std::printf("latency %-7s %9zu bytes %9.2f us\n", memory, bytes, median(times));
  }
}

// Measures messages that both ranks send and receive at the same time, and the exchange in a chain, in which each rank
// has a neighbour only on one side.
void exchange(const buffers& device) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{32768}, std::size_t{1} << 20}) {
    const std::uint64_t seed = next_seed();
    device.prepare(bytes, seed);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() > 1) continue;
    const int count = static_cast<int>(bytes);
    const auto both = [&](int to, int from) {
      MPI_Sendrecv(device.out, count, MPI_BYTE, to, 1, device.in, count, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    };
    const int other = 1 - rank();
    const auto time_of = [&](const std::function<void()>& f) {
      std::vector<double> times;
      for (int i = 0; i < 12; ++i) {
        const double begin = now();
        for (int n = 0; n < 100; ++n) f();
        if (i > 0) times.push_back((now() - begin) / 100 * 1e6);
      }
      return median(times);
    };
    const double at_once = time_of([&] { both(other, other); });
    const double chain = time_of([&] {
      rank() == 0 ? both(MPI_PROC_NULL, other) : both(other, MPI_PROC_NULL);
      rank() == 0 ? both(other, MPI_PROC_NULL) : both(MPI_PROC_NULL, other);
    });
    device.check(device.in, bytes, seed, "an exchange");
    if (rank() == 0)
      std::printf("exchange %9zu bytes %9.2f us both ways at once, %9.2f us in a chain of two\n", bytes, at_once, chain);
  }
}

void host_latency() {
  std::vector<unsigned char> out(65536);
  std::vector<unsigned char> in(65536);
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{512}, std::size_t{2032}, std::size_t{4096}, std::size_t{65536}}) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() > 1) continue;
    std::vector<double> times;
    for (int i = 0; i < 11; ++i) times.push_back(ping_pong(out.data(), in.data(), bytes, 1000));
    if (rank() == 0) std::printf("latency host   %9zu bytes %9.2f us\n", bytes, median(times));
  }
}

void bandwidth(const buffers& device) {
  std::vector<MPI_Request> requests;
  for (const std::size_t bytes : message_sizes) {
    if (bytes < 4096 || bytes * window > room) continue;
    for (const bool both : {false, true}) {
      const std::uint64_t seed = next_seed();
      device.prepare(bytes * window, seed);
      std::vector<double> times;
      std::vector<double> begun;
      for (int i = 0; i < 8 && rank() <= 1; ++i) {
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, 1 - rank(), 2, nullptr, 0, MPI_BYTE, 1 - rank(), 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        const double begin = now();
        requests.clear();
        for (int w = 0; w < window; ++w) {
          if (both || rank() == 1)
            MPI_Irecv(device.in + w * bytes, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 1, MPI_COMM_WORLD,
                      &requests.emplace_back());
        }
        for (int w = 0; w < window; ++w) {
          if (both || rank() == 0)
            MPI_Isend(device.out + w * bytes, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 1, MPI_COMM_WORLD,
                      &requests.emplace_back());
        }
        begun.push_back(now() - begin);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        MPI_Sendrecv(nullptr, 0, MPI_BYTE, 1 - rank(), 3, nullptr, 0, MPI_BYTE, 1 - rank(), 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (i > 0) times.push_back(now() - begin);
      }
      if (rank() > 1) continue;
      if (both || rank() == 1) device.check(device.in, bytes * window, seed, "messages");
      if (rank() == 0)
        std::printf("bandwidth %-8s %9zu bytes %9.2f GB/s, %.2f us to begin one\n", both ? "two ways" : "one way", bytes,
                    static_cast<double>(bytes) * window * (both ? 2 : 1) / median(times) / 1e9,
                    median(begun) * 1e6 / window / (both ? 2 : 1));
    }
  }
}

// Measures two transfers: several adjacent columns of a square matrix of floats, and the same number of contiguous
// bytes. straight: whether the columns begin at the same element of each row.
void strided(const buffers& device, bool straight) {
  constexpr int n = 8192;
  const auto begin_of = [&](std::size_t row) { return straight ? 0 : static_cast<int>(row * 37 % 64); };
  for (const int width : {1, 3, 16, 256, 2048, 6000}) {
    MPI_Datatype columns;
    std::vector<int> begins;
    for (int row = 0; row < n; ++row) begins.push_back(row * n + begin_of(row));
    if (straight) MPI_Type_vector(n, width, n, MPI_FLOAT, &columns);
    if (!straight) MPI_Type_create_indexed_block(n, width, begins.data(), MPI_FLOAT, &columns);
    MPI_Type_commit(&columns);
    const std::size_t matrix = std::size_t{n} * n * sizeof(float);
    const std::size_t bytes = std::size_t{n} * width * sizeof(float);
    const std::uint64_t seed = next_seed();
    device.prepare(matrix, seed);
    // The message has the values that the columns already have; all other elements are poisoned.
    std::vector<double> times;
    std::vector<double> in_a_row;
    for (int i = 0; i < 8 && rank() <= 1; ++i) {
      const double begin = now();
      if (rank() == 0) MPI_Send(device.out, 1, columns, 1, 1, MPI_COMM_WORLD);
      if (rank() == 1) MPI_Recv(device.in, 1, columns, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank() == 1) MPI_Send(device.out, 1, columns, 0, 1, MPI_COMM_WORLD);
      if (rank() == 0) MPI_Recv(device.in, 1, columns, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      times.push_back((now() - begin) / 2 * 1e6);
    }
    for (int i = 0; i < 8 && rank() <= 1; ++i)
      in_a_row.push_back(ping_pong(device.out, device.in + matrix, bytes, 4));
    MPI_Type_free(&columns);
    if (rank() > 1) continue;
    std::vector<unsigned char> sent(matrix);
    std::vector<unsigned char> got(matrix);
    CHECK(cudaMemcpy(sent.data(), device.out, matrix, cudaMemcpyDefault));
    CHECK(cudaMemcpy(got.data(), device.in, matrix, cudaMemcpyDefault));
    const std::size_t in_columns = std::size_t{static_cast<unsigned>(width)} * sizeof(float);
    for (std::size_t i = 0; i < matrix; ++i) {
      const std::size_t at = i % (n * sizeof(float)) - begin_of(i / (n * sizeof(float))) * sizeof(float);
      const bool inside = at < in_columns;
      if (got[i] == (inside ? sent[i] : 0xa5)) continue;
      std::printf("columns of %d: byte %zu is wrong\n", width, i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank() == 0)
      std::printf("%s %4d floats of each row %9.2f us, in a row %9.2f us\n", straight ? "strided" : "scattered", width,
                  median(times), median(in_a_row));
  }
}

// ---- Jacobi --------------------------------------------------------------------------------------------------------

constexpr int width = 8192;
constexpr int steps = 400;

__global__ void jacobi_step(float* to, const float* from, int rows) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) + 1;
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) + 1;
  if (x >= width - 1 || y > rows) return;
  const float* const p = from + std::size_t{static_cast<unsigned>(y)} * width + x;
  to[p - from] = 0.25F * (p[-1] + p[1] + p[-width] + p[width]);
}
__global__ void digest_rows(const float* rows, std::size_t begin, std::size_t cells, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < cells; i += std::size_t{gridDim.x} * blockDim.x)
    mine += (__float_as_uint(rows[i]) + 1ULL) * ((begin + i) * 0x9e3779b97f4a7c15ULL | 1);
  atomicAdd(sum, mine);
}

// A part of the field: some rows, and one more row on each side.
class part {
 public:
  part(int device, int first, int rows) : device_(device), first_(first), rows_(rows) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&outer_, cudaStreamNonBlocking));
    for (float*& h : halos_) CHECK(cudaMalloc(&h, 4 * row_bytes));
    for (float*& f : fields_) {
      CHECK(cudaMalloc(&f, bytes()));
      std::vector<float> start(bytes() / sizeof(float));
      for (std::size_t i = 0; i < start.size(); ++i)
        start[i] = static_cast<float>((static_cast<std::size_t>(first) * width + i) * 2654435761U % 1000) * 1e-3F;
      CHECK(cudaMemcpy(f, start.data(), bytes(), cudaMemcpyDefault));
    }
  }
  ~part() {
    CHECK(cudaSetDevice(device_));
    for (float* f : fields_) CHECK(cudaFree(f));
    for (float* h : halos_) CHECK(cudaFree(h));
  }
  void step() {
    compute(1, rows_, stream_);
    std::swap(fields_[0], fields_[1]);
  }
  // Computes a step. The outer rows are done when the function returns; the inner rows may still be computed until
  // wait() returns.
  void step_outer_first() {
    compute(1, 1, outer_);
    compute(rows_, 1, outer_);
    compute(2, rows_ - 2, stream_);
    CHECK(cudaStreamSynchronize(outer_));
    std::swap(fields_[0], fields_[1]);
  }
  // Like step_outer_first, but also copies the outer rows to separate memory, for messages.
  void step_outer_to_halos() {
    compute(1, 1, outer_);
    compute(rows_, 1, outer_);
    compute(2, rows_ - 2, stream_);
    CHECK(cudaMemcpyAsync(halo_out(true), fields_[1] + width, row_bytes, cudaMemcpyDefault, outer_));
    CHECK(cudaMemcpyAsync(halo_out(false), fields_[1] + static_cast<std::ptrdiff_t>(rows_) * width, row_bytes,
                          cudaMemcpyDefault, outer_));
    CHECK(cudaStreamSynchronize(outer_));
    std::swap(fields_[0], fields_[1]);
  }
  // Copies the rows that have arrived from the neighbours into the field.
  void take_halos(bool from_up, bool from_down) {
    if (from_up) CHECK(cudaMemcpyAsync(row(0), halo_in(true), row_bytes, cudaMemcpyDefault, outer_));
    if (from_down) CHECK(cudaMemcpyAsync(row(rows_ + 1), halo_in(false), row_bytes, cudaMemcpyDefault, outer_));
    CHECK(cudaStreamSynchronize(outer_));
  }
  [[nodiscard]] float* halo_out(bool up) const { return halos_[0] + (up ? 0 : width); }
  [[nodiscard]] float* halo_in(bool up) const { return halos_[1] + (up ? 0 : width); }
  void wait() const { CHECK(cudaStreamSynchronize(stream_)); }
  [[nodiscard]] float* row(int r) const { return fields_[0] + static_cast<std::ptrdiff_t>(r) * width; }
  [[nodiscard]] unsigned long long digest() const {
    unsigned long long* sum = nullptr;
    CHECK(cudaMallocManaged(&sum, sizeof *sum));
    *sum = 0;
    digest_rows<<<256, 256, 0, stream_>>>(row(1), static_cast<std::size_t>(first_) * width,
                                          static_cast<std::size_t>(rows_) * width, sum);
    wait();
    const unsigned long long result = *sum;
    CHECK(cudaFree(sum));
    return result;
  }

 private:
  void compute(int first, int rows, cudaStream_t stream) {
    const std::ptrdiff_t skipped = static_cast<std::ptrdiff_t>(first - 1) * width;
    jacobi_step<<<dim3(width / 64, (rows + 3) / 4), dim3(64, 4), 0, stream>>>(fields_[1] + skipped,
                                                                               fields_[0] + skipped, rows);
  }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(rows_ + 2) * width * sizeof(float); }
  int device_;
  int first_;
  int rows_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t outer_ = nullptr;
  static constexpr std::size_t row_bytes = width * sizeof(float);
  float* fields_[2] = {};
  float* halos_[2] = {};  // the rows to send, and the received rows
};

void jacobi() {
  int ranks = 0;
  int gpus = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(cudaGetDeviceCount(&gpus));
  unsigned long long expected = 0;
  double alone = 0;
  if (rank() == 0) {
    part all(0, 0, width);
    all.step(), all.wait();
    const double begin = now();
    for (int s = 1; s < steps; ++s) all.step(), all.wait();
    alone = now() - begin;
    expected = all.digest();
    std::printf("jacobi one GPU          %8.4f s\n", alone);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  enum class exchange { after, overlap, overlap_of_halos };
  for (const exchange way : {exchange::after, exchange::overlap, exchange::overlap_of_halos}) {
    const int rows = width / ranks;
    part mine(rank() % gpus, rank() * rows, rows);
    const int up = rank() > 0 ? rank() - 1 : MPI_PROC_NULL;
    const int down = rank() < ranks - 1 ? rank() + 1 : MPI_PROC_NULL;
    double begin = 0;
    for (int s = 0; s < steps; ++s) {
      const bool halos = way == exchange::overlap_of_halos;
      if (way == exchange::after) mine.step(), mine.wait();
      if (way == exchange::overlap) mine.step_outer_first();
      if (halos) mine.step_outer_to_halos();
      MPI_Sendrecv(halos ? mine.halo_out(true) : mine.row(1), width, MPI_FLOAT, up, 1,
                   halos ? mine.halo_in(false) : mine.row(rows + 1), width, MPI_FLOAT, down, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      MPI_Sendrecv(halos ? mine.halo_out(false) : mine.row(rows), width, MPI_FLOAT, down, 2,
                   halos ? mine.halo_in(true) : mine.row(0), width, MPI_FLOAT, up, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (halos) mine.take_halos(up != MPI_PROC_NULL, down != MPI_PROC_NULL);
      mine.wait();
      if (s == 0) MPI_Barrier(MPI_COMM_WORLD), begin = now();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = now() - begin;
    const unsigned long long mine_sum = mine.digest();
    unsigned long long sum = 0;
    MPI_Reduce(&mine_sum, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank() == 0)
      std::printf("jacobi %d ranks%-9s %8.4f s, %.3f x, %s\n", ranks,
                  way == exchange::after ? "" : way == exchange::overlap ? ", overlap" : ", halos", seconds,
                  alone / seconds, sum == expected ? "same result" : "WRONG RESULT");
    if (rank() == 0 && sum != expected) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank() != 0 || gpus < 2) return;
  cudaDeviceEnablePeerAccess(1, 0);
  CHECK(cudaSetDevice(1));
  cudaDeviceEnablePeerAccess(0, 0);
  cudaGetLastError();
  for (const bool overlap : {false, true}) {
    const int rows = width / 2;
    part first(0, 0, rows);
    part second(1, rows, rows);
    std::atomic<int> at[2] = {};
    double begin = 0;
    const auto run = [&](part& mine, part& other, int which) {
      CHECK(cudaSetDevice(which));
      cudaStream_t copies = nullptr;
      CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
      auto meet = [&, turn = 0]() mutable {
        at[which] = ++turn;
        while (at[1 - which] < turn) {
        }
      };
      for (int s = 0; s < steps; ++s) {
        overlap ? mine.step_outer_first() : (mine.step(), mine.wait());
        meet();
        const auto to = which == 0 ? mine.row(rows + 1) : mine.row(0);
        const auto from = which == 0 ? other.row(1) : other.row(rows);
        CHECK(cudaMemcpyAsync(to, from, width * sizeof(float), cudaMemcpyDefault, copies));
        CHECK(cudaStreamSynchronize(copies));
        mine.wait();
        meet();
        if (s == 0 && which == 0) begin = now();
      }
    };
    std::thread other(run, std::ref(second), std::ref(first), 1);
    run(first, second, 0);
    other.join();
    const double seconds = now() - begin;
    CHECK(cudaSetDevice(0));
    const unsigned long long of_first = first.digest();
    CHECK(cudaSetDevice(1));
    const unsigned long long of_second = second.digest();
    std::printf("jacobi threads, 2 GPUs%s %8.4f s, %.3f x, %s\n", overlap ? ", overlap" : "", seconds, alone / seconds,
                of_first + of_second == expected ? "same result" : "WRONG RESULT");
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int gpus = 0;
  CHECK(cudaGetDeviceCount(&gpus));
  CHECK(cudaSetDevice(rank() % gpus));
  CHECK(cudaFree(nullptr));
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  const auto is_wanted = [&](const char* what) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), what) != wanted.end();
  };
  {
    buffers device;
    if (is_wanted("host")) host_latency();
    bool any = false;
    for (const char* part : {"latency", "exchange", "bandwidth", "strided"}) any = any || is_wanted(part);
    if (any) device.allocate();
    if (is_wanted("latency")) latency(device, "device");
    if (is_wanted("exchange")) exchange(device);
    if (is_wanted("bandwidth")) bandwidth(device);
    if (is_wanted("strided")) strided(device, true), strided(device, false);
  }
  if (is_wanted("pool")) {
    buffers of_pool;
    of_pool.allocate(buffers::memory::pool);
    latency(of_pool, "pool");
  }
  if (is_wanted("managed")) {
    buffers managed;
    managed.allocate(buffers::memory::managed);
    latency(managed, "managed", std::size_t{1} << 20);
  }
  if (is_wanted("jacobi")) jacobi();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
