// CPU code and system calls use device pointers, which hpe allows. Each step checks its results. A host function delays
// the kernels, and CPU code uses their results without waiting for the stream.
//
//   host_access <file>      a file that may be overwritten
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/interpose/programs/check.h"

__global__ void add(unsigned* p, std::size_t n, unsigned k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] += k;
}

static unsigned long seed;

// Delays the later work on the stream by 20 ms.
static void hold_up(cudaStream_t stream) {
  CHECK(cudaLaunchHostFunc(stream, [](void*) { usleep(20000); }, nullptr));
}

static void demand(bool good, const char* what) {
  std::printf("%s: %s\n", what, good ? "right" : "WRONG");
  if (!good) {
    std::printf("seed %lu\n", seed);
    std::exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : std::random_device{}();
  std::mt19937_64 engine(seed);
  constexpr std::size_t n = (std::size_t{3} << 20) / 4 + 77, bytes = n * sizeof(unsigned);
  std::vector<unsigned> wanted(n);
  for (unsigned& value : wanted) value = unsigned(engine());
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  for (int d = 0; d < devices; ++d) {
    std::printf("device %d\n", d);
    CHECK(cudaSetDevice(d));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    unsigned* p;
    CHECK(cudaMalloc(&p, bytes));

    std::copy(wanted.begin(), wanted.end(), p);  // CPU writes
    hold_up(stream);
    add<<<20, 128, 0, stream>>>(p, n, 5);
    for (unsigned& value : wanted) value += 5;
    demand(std::equal(wanted.begin(), wanted.end(), p), "read after a kernel");

    p[n - 1] = 1234567;
    *std::max_element(p, p + 1000) = 3;
    *std::max_element(wanted.begin(), wanted.begin() + 1000) = 3;
    wanted[n - 1] = 1234567;
    add<<<20, 128, 0, stream>>>(p, n, 9);
    for (unsigned& value : wanted) value += 9;
    std::vector<unsigned> copied(n);
    CHECK(cudaMemcpyAsync(copied.data(), p, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    demand(copied == wanted, "copy after CPU code wrote");

    const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    hold_up(stream);
    add<<<20, 128, 0, stream>>>(p, n, 1);
    for (unsigned& value : wanted) value += 1;
    demand(write(file, p, bytes) == ssize_t(bytes), "write(2) of device memory");
    demand(pread(file, copied.data(), bytes, 0) == ssize_t(bytes) && copied == wanted, "what the file has");
    unsigned* q;
    CHECK(cudaMalloc(&q, bytes));
    CHECK(cudaMemset(q, 0xee, bytes));
    demand(pread(file, q + 13, bytes - 52, 52) == ssize_t(bytes - 52), "read(2) into device memory");
    hold_up(stream);
    add<<<20, 128, 0, stream>>>(q, n, 2);
    bool good = true;
    for (std::size_t i = 0; i < n; ++i) good = good && q[i] == (i < 13 ? 0xeeeeeeeeU : wanted[i]) + 2;
    demand(good, "a kernel after read(2)");
    close(file);
    hold_up(stream);
    add<<<20, 128, 0, stream>>>(q, n, 3);
    CHECK(cudaMemcpyAsync(p, q, bytes, cudaMemcpyDeviceToDevice, stream));
    std::vector<unsigned> by_memcpy(n);
    std::memcpy(by_memcpy.data(), p, bytes);
    demand(by_memcpy[13] == wanted[13] + 5 && by_memcpy[n - 1] == wanted[n - 1] + 5, "memcpy(3) after a kernel and a copy");

    FILE* const buffered = std::fopen(argv[1], "w+");
    demand(std::fwrite(q, sizeof *q, n, buffered) == n, "fwrite");
    std::rewind(buffered);
    demand(std::fread(p, sizeof *p, n, buffered) == n, "fread");
    std::fclose(buffered);
    demand(std::equal(p, p + n, q), "both the same");
    CHECK(cudaFree(p));
    CHECK(cudaFree(q));
    CHECK(cudaStreamDestroy(stream));
  }
  std::printf("host access: right\n");
}
