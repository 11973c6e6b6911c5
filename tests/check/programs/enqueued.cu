// Programs that use CUDA and hpe's own interface: work that hpe queues with functions of the program (hpeEnqueue,
// hpe::launch of hpe/cuda.hpp), and work that the program queues itself.
#include <cstdlib>

#include "hpe/cuda.hpp"
#include "tests/check/programs/cuda_cases.h"

// `count` zeros in hpe memory.
struct hpe_ints : int_memory {
  hpe_ints() {
    void* got = nullptr;
    hpe::check(hpeMalloc(&got, bytes));
    p = static_cast<int*>(got);
    std::memset(p, 0, bytes);
  }
  ~hpe_ints() {
    hpe::check(hpeSynchronize());
    hpe::check(hpeFree(p));
  }
};

static void finish() {
  hpe::check(hpeSynchronize());
  wait_for_all();
}

static __global__ void scale(int* p) { p[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
static __global__ void set(int* p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 5; }

static int queue_set(void* stream, void* argument) {
  set<<<4, 256, 0, static_cast<cudaStream_t>(stream)>>>(*static_cast<int**>(argument));  // FIRST
  return 0;
}

CASE(kernel_writes_what_its_call_only_reads) {  // undeclared-write -
  hpe_ints x;
  int* p = x;
  const hpeAccess access{p, bytes, wrong ? HPE_IN : HPE_INOUT};
  hpe::check(hpeEnqueue(0, queue_set, &p, &access, 1));  // FIRST
}

struct two_pointers {
  int *to, *from;
};

static int queue_copy_and_scale(void* stream, void* argument) {
  const two_pointers& its = *static_cast<two_pointers*>(argument);
  const auto s = static_cast<cudaStream_t>(stream);
  CHECK(cudaMemcpyAsync(its.to, its.from, bytes, cudaMemcpyDeviceToDevice, s));
  scale<<<4, 256, 0, s>>>(its.to);
  CHECK(cudaMemsetAsync(its.from + 100, 1, 400, s));  // FIRST
  return 0;
}

CASE(memset_of_what_its_call_only_reads) {  // undeclared-write -
  hpe_ints x, y;
  two_pointers its{y, x};
  const hpeAccess accesses[] = {{x.p, bytes, wrong ? HPE_IN : HPE_INOUT}, {y.p, bytes, HPE_OUT}};
  hpe::check(hpeEnqueue(0, queue_copy_and_scale, &its, accesses, 2));  // FIRST
}

// Soft devices do not run kernels of hpe::launch.
template <class... Arguments>
static void launch(const Arguments&... arguments) {
  try {
    hpe::launch(arguments...);  // FIRST
  } catch (const hpe::error& e) {
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
  }
}

CASE(launch_of_a_kernel_that_writes_what_it_only_reads) {  // undeclared-write - (only on GPUs)
  hpe_ints x;
  const hpeAccess access{x.p, bytes, wrong ? HPE_IN : HPE_INOUT};
  launch(set, dim3(4), dim3(256), x.p, access);  // FIRST
}

// The program itself must order its own streams, and hpe the work that it queues itself.
CASE(program_that_uses_cuda_too) {  // stream-race fill
  hpe_ints x;
  ints p, q;
  stream a, b;
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  launch(scale, dim3(4), dim3(256), x.p);
  launch(fill, dim3(4), dim3(256), x.p, count, 3);
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

static int queue_fill(void* stream, void* argument) {
  fill<<<4, 256, 0, static_cast<cudaStream_t>(stream)>>>(*static_cast<int**>(argument), count, 6);
  return 0;
}

// Memory of CUDA that work of hpe has written is written.
CASE(memory_of_cuda_in_work_of_hpe) {  // never-written twice
  hpe_ints x;
  int* p = nullptr;
  ints q;
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  const hpeAccess access{x.p, bytes, HPE_INOUT};
  if (!wrong) hpe::check(hpeEnqueue(0, queue_fill, &p, &access, 1));
  hpe::check(hpeSynchronize());
  twice<<<4, 256>>>(q, p, count);  // SECOND
  wait_for_all();
  CHECK(cudaFree(p));
}

__device__ int variable[count];

static __global__ void fill_variable(int value) { variable[blockIdx.x * blockDim.x + threadIdx.x] = value; }

// Waits of hpe are waits for the work of hpe, not for the program's own work.
CASE_ALONE(hpe_waits_for_its_own_work) {  // never-waited -
  void* x = nullptr;
  hpe::check(hpeMalloc(&x, bytes));
  cudaStream_t a;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  if (wrong) fill_variable<<<4, 256, 0, a>>>(1);  // FIRST
  const hpeAccess access{x, bytes, HPE_INOUT};
  int* p = static_cast<int*>(x);
  hpe::check(hpeEnqueue(0, queue_set, &p, &access, 1));
  launch(set, dim3(4), dim3(256), p);
  hpe::check(hpeSynchronize());
  hpe::check(hpeFree(x));
  std::exit(0);
}

int main(int argc, char** argv) { return run_cases(argc, argv, finish); }
