// Launches of hpe's interface whose kernels use other memory than the launches declare. The kernels are PTX in the
// program itself (hpeKernelOfProgram).
#include <cstdlib>

#include "hpe/hpe.h"
#include "hpe/ptx.h"
#include "hpe/spread.h"
#include "tests/check/programs/cases.h"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != HPE_SUCCESS) {                                                           \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hpeGetLastErrorMessage()); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)

constexpr unsigned count = 1024;
constexpr size_t bytes = count * sizeof(int);
static const hpeGrid grid{{count / 256, 1, 1}, {256, 1, 1}, 0, 0, {}};

static void wait_for_all() { CHECK(hpeSynchronize()); }

static hpeKernel kernel_of(const void* function, const char* name) {
  hpeKernel kernel;
  CHECK(hpeKernelOfProgram(&kernel, function, name));
  return kernel;
}
#define KERNEL(name) kernel_of((const void*)(name), #name)

struct ints {
  int* p;
  explicit ints(size_t size = bytes) {
    void* got;
    CHECK(hpeMalloc(&got, size));
    p = static_cast<int*>(got);
    std::memset(p, 0, size);
  }
  ints(const ints&) = delete;
  ints& operator=(const ints&) = delete;
  ~ints() {
    CHECK(hpeSynchronize());
    CHECK(hpeFree(p));
  }
};

extern "C" __global__ void scale(int* p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] *= 2;  // SECOND
}

CASE(declared_as_read_and_written) {  // undeclared-write scale
  ints x;
  const hpeAccess access{x.p, bytes, wrong ? HPE_IN : HPE_INOUT};
  CHECK(hpeLaunchGrid(0, KERNEL(scale), &grid, &x.p, sizeof x.p, &access, 1, nullptr));  // FIRST
}

extern "C" __global__ void increment(int* p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] += 1;  // SECOND
}

CASE(declared_as_written_and_read_before) {  // undeclared-read increment
  ints x;
  const hpeAccess access{x.p, bytes, wrong ? HPE_OUT : HPE_INOUT};
  CHECK(hpeLaunchGrid(0, KERNEL(increment), &grid, &x.p, sizeof x.p, &access, 1, nullptr));  // FIRST
}

struct two_pointers {
  int* to;
  const int* from;
};

extern "C" __global__ void copy(int* to, const int* from) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];  // SECOND
}

CASE(source_not_declared) {  // undeclared-read copy
  ints x, y;
  const two_pointers arguments{y.p, x.p};
  const hpeAccess accesses[] = {{y.p, bytes, HPE_OUT}, {x.p, bytes, HPE_IN}};
  const size_t given = wrong ? 1 : 2;
  CHECK(hpeLaunchGrid(0, KERNEL(copy), &grid, &arguments, sizeof arguments, accesses, given, nullptr));  // FIRST
}

extern "C" __global__ void negative(int* to, const int* from) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = -from[i];  // SECOND
}

CASE(result_not_declared) {  // undeclared-write negative
  ints x, y;
  const two_pointers arguments{y.p, x.p};
  const hpeAccess accesses[] = {{x.p, bytes, HPE_IN}, {y.p, bytes, HPE_OUT}};
  const size_t given = wrong ? 1 : 2;
  CHECK(hpeLaunchGrid(0, KERNEL(negative), &grid, &arguments, sizeof arguments, accesses, given, nullptr));  // FIRST
}

extern "C" __global__ void square(int* p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] *= p[i];  // SECOND
}

CASE(range_too_short) {  // beyond-range square
  ints x(2 * bytes);
  const hpeAccess access{x.p, wrong ? bytes / 2 : bytes, HPE_INOUT};
  CHECK(hpeLaunchGrid(0, KERNEL(square), &grid, &x.p, sizeof x.p, &access, 1, nullptr));  // FIRST
}

extern "C" __global__ void difference(int* to, const int* from) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i + 1] - from[i];  // SECOND
}

CASE(neighbour_not_declared) {  // beyond-range difference
  ints x(2 * bytes), y;
  const two_pointers arguments{y.p, x.p};
  const hpeAccess accesses[] = {{x.p, bytes + (wrong ? 0 : sizeof(int)), HPE_IN}, {y.p, bytes, HPE_OUT}};
  CHECK(hpeLaunchGrid(0, KERNEL(difference), &grid, &arguments, sizeof arguments, accesses, 2, nullptr));  // FIRST
}

extern "C" __global__ void beyond(int* p, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i < n ? i : i + 1] = 1;  // SECOND
}

CASE(beyond_the_allocation) {  // out-of-range beyond
  ints x;
  const struct {
    int* p;
    unsigned n;
  } arguments{x.p, wrong ? count - 1 : count};
  const hpeAccess access{x.p, bytes, HPE_INOUT};
  CHECK(hpeLaunchGrid(0, KERNEL(beyond), &grid, &arguments, sizeof arguments, &access, 1, nullptr));  // FIRST
}

extern "C" __global__ void prefix(int* p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = i == 0 ? 0 : i;                             // FIRST
  if (threadIdx.x == 0 && i != 0) p[i] += p[i - 1];  // SECOND
}

extern "C" __global__ void prefix_in_block(int* p) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = i;
}

CASE(blocks_that_need_each_other) {  // block-race prefix
  ints x;
  const hpeAccess access{x.p, bytes, HPE_INOUT};
  const hpeKernel kernel = wrong ? KERNEL(prefix) : KERNEL(prefix_in_block);
  CHECK(hpeLaunchGrid(0, kernel, &grid, &x.p, sizeof x.p, &access, 1, nullptr));
}

int main(int argc, char** argv) { return run_cases(argc, argv, wait_for_all); }
