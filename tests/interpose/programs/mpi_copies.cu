// Measures the driver's copies between the GPUs of two MPI ranks; messages between these GPUs cannot be faster. The
// printed numbers are medians. This is a plain CUDA and MPI program, which runs with or without hpe:
//
//   mpirun -n 2 [hpe run --] mpi_copies-static
#include <cuda.h>

#include <atomic>
#include <functional>
#include <vector>

#include "mpi_bench.h"

namespace {

#define CHECK_DRIVER(call) \
  if ((call) != CUDA_SUCCESS) std::printf("%s failed\n", #call), std::exit(1)

// Copies a multiple of 16 bytes, and then raises a flag.
__global__ void copy_and_raise(uint4* to, const uint4* from, std::size_t count, volatile int* flag, int turn) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *flag = turn;
}

// Measures the least time that a message needs, in three ways. First way: the sender copies into the other rank's
// memory (IPC), waits, and raises a flag in shared memory, which the receiver polls. Second way: the device raises the
// flag after the copy, and the sender does not wait. Third way: a kernel copies and raises the flag.
void by_hand(const buffers& device) {
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &machine);
  struct alignas(64) flag {
    std::atomic<int> turn;
  };
  flag* flags = nullptr;
  MPI_Win window_of_flags;
  MPI_Win_allocate_shared(rank() == 0 ? 2 * sizeof(flag) : 0, 1, MPI_INFO_NULL, machine, &flags, &window_of_flags);
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_shared_query(window_of_flags, 0, &size, &unit, &flags);
  if (rank() == 0) flags[0].turn = flags[1].turn = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() <= 1) {
    cudaIpcMemHandle_t mine;
    cudaIpcMemHandle_t theirs;
    CHECK(cudaIpcGetMemHandle(&mine, device.in));
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - rank(), 4, &theirs, sizeof theirs, MPI_BYTE, 1 - rank(), 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    void* there = nullptr;
    CHECK(cudaIpcOpenMemHandle(&there, theirs, cudaIpcMemLazyEnablePeerAccess));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const auto copy = [&](std::size_t bytes) {
      CHECK(cudaMemcpyAsync(there, device.out, bytes, cudaMemcpyDefault, stream));
      CHECK(cudaStreamSynchronize(stream));
    };
    int turn = 0;
    void* flag_of_device = nullptr;
    int raises = cudaHostRegister(flags, 2 * sizeof(flag), cudaHostRegisterMapped) == cudaSuccess &&
                 cudaHostGetDevicePointer(&flag_of_device, &flags[rank()].turn, 0) == cudaSuccess;
    cudaGetLastError();
    int other_raises = 0;
    MPI_Sendrecv(&raises, 1, MPI_INT, 1 - rank(), 4, &other_raises, 1, MPI_INT, 1 - rank(), 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    raises = raises && other_raises;
    const auto tell_by_device = [&] {
      CHECK_DRIVER(cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(flag_of_device), turn, 0));
    };
    const auto tell = [&] { flags[rank()].turn.store(turn, std::memory_order_release); };
    const auto await = [&] {
      while (flags[1 - rank()].turn.load(std::memory_order_acquire) < turn) {
      }
    };
    for (const std::size_t bytes : message_sizes) {
      const int n = bytes <= 1 << 20 ? 100 : 10;
      std::vector<double> one_way;
      std::vector<double> at_once;
      std::vector<double> alone;
      std::vector<double> by_device;
      std::vector<double> by_kernel;
      for (int i = 0; i < 12; ++i) {
        double begin = now();
        for (int k = 0; k < n; ++k) {
          ++turn;
          if (rank() == 1) await();
          copy(bytes);
          tell();
          if (rank() == 0) await();
        }
        if (i > 0) one_way.push_back((now() - begin) / n / 2 * 1e6);
        begin = now();
        for (int k = 0; k < n; ++k) {
          ++turn;
          copy(bytes);
          tell();
          await();
        }
        if (i > 0) at_once.push_back((now() - begin) / n * 1e6);
        begin = now();
        for (int k = 0; k < n && rank() == 0; ++k) copy(bytes);
        if (i > 0) alone.push_back((now() - begin) / n * 1e6);
        ++turn;
        tell();
        await();
        begin = now();
        for (int k = 0; k < n && raises; ++k) {
          ++turn;
          if (rank() == 1) await();
          CHECK(cudaMemcpyAsync(there, device.out, bytes, cudaMemcpyDefault, stream));
          tell_by_device();
          if (rank() == 0) await();
        }
        if (i > 0) by_device.push_back((now() - begin) / n / 2 * 1e6);
        CHECK(cudaStreamSynchronize(stream));
        ++turn;
        tell();
        await();
        const std::size_t units = (bytes + sizeof(uint4) - 1) / sizeof(uint4);
        const unsigned threads = units < 1024 ? static_cast<unsigned>(units + 31) / 32 * 32 : 1024;
        begin = now();
        for (int k = 0; k < n && raises && bytes <= 65536; ++k) {
          ++turn;
          if (rank() == 1) await();
          copy_and_raise<<<1, threads, 0, stream>>>(static_cast<uint4*>(there), reinterpret_cast<const uint4*>(device.out),
                                                    units, static_cast<int*>(flag_of_device), turn);
          CHECK(cudaGetLastError());
          if (rank() == 0) await();
        }
        if (i > 0 && bytes <= 65536) by_kernel.push_back((now() - begin) / n / 2 * 1e6);
        CHECK(cudaStreamSynchronize(stream));
        ++turn;
        tell();
        await();
      }
      if (rank() != 0) continue;
      std::printf("by hand %9zu bytes %9.2f us, both ways at once %9.2f us; only one rank copies %9.2f us; the device raises "
                  "the flag %9.2f us\n",
                  bytes, median(one_way), median(at_once), median(alone), median(by_device));
      if (!by_kernel.empty()) std::printf("by a kernel %9zu bytes %9.2f us\n", bytes, median(by_kernel));
    }
    if (flag_of_device != nullptr) CHECK(cudaHostUnregister(flags));
    CHECK(cudaIpcCloseMemHandle(there));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window_of_flags);
  MPI_Comm_free(&machine);
}

void peer_copies() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (rank() != 0 || count < 2) return;
  unsigned char* here = nullptr;
  unsigned char* there = nullptr;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&there, room));
  cudaDeviceEnablePeerAccess(0, 0);
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&here, room));
  cudaDeviceEnablePeerAccess(1, 0);
  cudaGetLastError();
  // Either the sending or the receiving device executes the copy.
  cudaStream_t streams[2];
  for (int d = 0; d < 2; ++d) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
  }
  const auto time_of = [&](const std::function<void()>& f) {
    std::vector<double> times;
    for (int i = 0; i < 30; ++i) {
      const double begin = now();
      f(), times.push_back((now() - begin) * 1e6);
    }
    return median(times);
  };
  const auto time_of_copies = [&](int by, int number, std::size_t bytes) {
    return time_of([&] {
      for (int n = 0; n < number; ++n)
        CHECK(cudaMemcpyPeerAsync(there + n * bytes, 1, here + n * bytes, 0, bytes, streams[by]));
      CHECK(cudaStreamSynchronize(streams[by]));
    });
  };
  for (const std::size_t bytes : message_sizes) {
    double one[2];
    double many[2] = {};
    for (int by = 0; by < 2; ++by) {
      CHECK(cudaSetDevice(by));
      one[by] = time_of_copies(by, 1, bytes);
      if (bytes * window <= room) many[by] = static_cast<double>(bytes) * window / time_of_copies(by, window, bytes) / 1e3;
    }
    std::printf("peer copy      %9zu bytes %9.2f us, %9.2f GB/s with %d in flight; by the receiver %9.2f us, %9.2f GB/s\n",
                bytes, one[0], many[0], window, one[1], many[1]);
  }
  // With pauses between copies, as in a ping-pong.
  CHECK(cudaSetDevice(0));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{32768}, std::size_t{1} << 20}) {
    std::vector<double> times;
    for (int i = 0; i < 100; ++i) {
      const double pause = now() + 15e-6;
      while (now() < pause) {
      }
      const double begin = now();
      CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, bytes, streams[0]));
      CHECK(cudaStreamSynchronize(streams[0]));
      times.push_back((now() - begin) * 1e6);
    }
    const double queried = time_of([&] {
      CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, bytes, streams[0]));
      while (cudaStreamQuery(streams[0]) == cudaErrorNotReady) {
      }
    });
    std::printf("after a pause  %9zu bytes %9.2f us; without one, awaited by queries %9.2f us\n", bytes, median(times), queried);
  }
  // Copies on several streams, each followed by an event.
  cudaStream_t more[4] = {streams[0]};
  for (int s = 1; s < 4; ++s) CHECK(cudaStreamCreateWithFlags(&more[s], cudaStreamNonBlocking));
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{16} << 20})
    for (const int used : {1, 2, 4})
      for (const std::size_t marked : {std::size_t{4} << 20, std::size_t{16} << 20, room}) {
        const double us = time_of([&] {
          std::size_t unmarked[4] = {};
          for (int n = 0; n < window; ++n) {
            const int s = n % used;
            CHECK(cudaMemcpyPeerAsync(there + n * bytes, 1, here + n * bytes, 0, bytes, more[s]));
            unmarked[s] += bytes;
            if (unmarked[s] < marked) continue;
            CHECK(cudaEventRecord(event, more[s]));
            unmarked[s] = 0;
          }
          for (int s = 0; s < used; ++s) CHECK(cudaStreamSynchronize(more[s]));
        });
        std::printf("peer copies    %9zu bytes, %d streams, an event behind %4zu MiB: %9.2f GB/s\n", bytes, used,
                    marked >> 20, static_cast<double>(bytes) * window / us / 1e3);
      }
  for (const std::size_t width_bytes : {4, 64, 1024}) {
    constexpr std::size_t pitch = 32768;
    constexpr std::size_t rows = 8192;
    CHECK(cudaSetDevice(1));
    const double across = time_of([&] {
      CHECK(cudaMemcpy2DAsync(there, pitch, here, pitch, width_bytes, rows, cudaMemcpyDefault, streams[1]));
      CHECK(cudaStreamSynchronize(streams[1]));
    });
    CHECK(cudaSetDevice(0));
    const double gathered = time_of([&] {
      CHECK(cudaMemcpy2DAsync(here + room / 2, width_bytes, here, pitch, width_bytes, rows, cudaMemcpyDefault,
                              streams[0]));
      CHECK(cudaStreamSynchronize(streams[0]));
    });
    std::printf("peer rows of %4zu bytes, %zu of them: %9.2f us; gathered on one device %9.2f us\n", width_bytes, rows,
                across, gathered);
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
  {
    buffers device;
    device.allocate();
    by_hand(device);
    CHECK(cudaFree(device.out));
    CHECK(cudaFree(device.in));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  peer_copies();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
