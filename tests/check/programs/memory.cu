// Memory that was freed, never written, leaked or never waited for, accesses beyond an allocation, and races between
// the threads of one launch.
#include <cooperative_groups.h>

#include "tests/check/programs/cuda_cases.h"

CASE_ALONE(kernel_after_free) {  // use-after-free fill
  int* p;
  stream a;
  CHECK(cudaMalloc(&p, bytes));
  fill<<<4, 256, 0, a>>>(p, count, 1);             // loads the module, whose variables could get the freed address
  CHECK(cudaFree(p));                              // FIRST
  if (wrong) fill<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
  (void)cudaStreamSynchronize(a);
  std::exit(0);  // errors of a device stay until the process ends
}

CASE_ALONE(kernel_with_an_old_pointer) {  // use-after-free add
  int *p, *q;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMemset(p, 0, bytes));
  CHECK(cudaMalloc(&q, bytes));  // before the free, because it could get the address of p
  CHECK(cudaMemset(q, 0, bytes));
  CHECK(cudaFree(p));                        // FIRST
  add<<<4, 256>>>(wrong ? p : q, count, 1);  // SECOND
  (void)cudaDeviceSynchronize();
  (void)cudaFree(q);
  std::exit(0);
}

CASE_ALONE(pool_memory_used_after_free) {  // use-after-free fill
  int* p;
  stream a;
  CHECK(cudaMallocAsync(&p, bytes, a));
  if (!wrong) fill<<<4, 256, 0, a>>>(p, count, 1);
  CHECK(cudaFreeAsync(p, a));                      // FIRST
  if (wrong) fill<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
  (void)cudaStreamSynchronize(a);
  std::exit(0);
}

CASE(never_written) {  // never-written twice
  ints q;
  int* p;
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  if (!wrong) CHECK(cudaMemset(p, 0, bytes));
  twice<<<4, 256>>>(q, p, count);  // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

CASE(half_never_written) {  // never-written twice
  ints q;
  int* p;
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  CHECK(cudaMemset(p, 0, bytes / 2));
  twice<<<3, 256>>>(q, p, wrong ? count / 2 + 1 : count / 2);  // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

CASE(count_in_bytes_and_not_in_elements) {  // never-written twice
  ints q;
  int* p;
  std::vector<int> from(count);
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  CHECK(cudaMemcpy(p, from.data(), wrong ? count : bytes, cudaMemcpyHostToDevice));
  twice<<<4, 256>>>(q, p, count);  // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

CASE(copied_back_and_never_written) {  // never-written -
  int* p;
  std::vector<int> to(count);
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  if (!wrong) fill<<<4, 256>>>(p, count, 1);
  CHECK(cudaMemcpy(to.data(), p, bytes, cudaMemcpyDeviceToHost));  // SECOND
  CHECK(cudaFree(p));
}

CASE(pool_memory_never_written) {  // never-written add
  int* p;
  stream a;
  CHECK(cudaMallocAsync(&p, bytes, a));  // FIRST
  if (!wrong) CHECK(cudaMemsetAsync(p, 0, bytes, a));
  add<<<4, 256, 0, a>>>(p, count, 1);  // SECOND
  CHECK(cudaFreeAsync(p, a));
}

template <class T>
__global__ void copy_of(T* q, const T* p) {
  q[threadIdx.x] = p[threadIdx.x];
}

CASE(never_written_before_a_template) {  // never-written copy_of
  ints q;
  int* p;
  CHECK(cudaMalloc(&p, bytes));  // FIRST
  if (!wrong) CHECK(cudaMemset(p, 0, bytes));
  copy_of<int><<<1, 256>>>(q, p);  // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

// Keeps a sum in memory, so that its line reads what an earlier line has written.
__global__ void sum_up(int* p, bool begins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (begins) p[i] = 0;
  for (int n = 0; n < 4; ++n) {
    p[i] += n;
    __syncthreads();
  }
}

CASE(sum_without_a_first_value) {  // never-written sum_up (not found)
  int* p;
  CHECK(cudaMalloc(&p, bytes));             // FIRST
  sum_up<<<count / 256, 256>>>(p, !wrong);  // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

CASE(grid_is_too_small) {  // never-written twice
  ints q;
  int* p;
  CHECK(cudaMalloc(&p, bytes));                                 // FIRST
  fill<<<(wrong ? 1000 : 1023 + 1) / 256, 256>>>(p, count, 1);  // rounds down
  twice<<<4, 256>>>(q, p, count);                               // SECOND
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

__device__ int left[count];

__global__ void fill_variable(int value) { left[blockIdx.x * blockDim.x + threadIdx.x] = value; }

CASE_ALONE(kernel_not_waited_for) {  // never-waited -
  cudaStream_t a;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  fill_variable<<<4, 256, 0, a>>>(1);
  CHECK(cudaStreamSynchronize(a));
  fill_variable<<<4, 256, 0, a>>>(2);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::exit(0);
}

__device__ int kept[count];

// Nobody sees the effect of the last memset.
CASE_ALONE(copy_not_waited_for) {  // never-waited -
  cudaStream_t a;
  void *to, *from;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaGetSymbolAddress(&to, kept));
  CHECK(cudaGetSymbolAddress(&from, left));
  CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  CHECK(cudaMemsetAsync(to, 0, bytes, a));
  std::exit(0);
}

CASE_ALONE(leak) {  // leak -
  int *p, *q;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMalloc(&q, 2 * bytes));  // FIRST
  CHECK(cudaFree(p));
  if (!wrong) CHECK(cudaFree(q));
}

CASE_ALONE(leak_of_pool_memory) {  // leak -
  int* p;
  stream a;
  CHECK(cudaMallocAsync(&p, bytes, a));  // FIRST
  if (!wrong) CHECK(cudaFreeAsync(p, a));
}

CASE_ALONE(leak_in_a_loop) {  // leak -
  for (int i = 0; i < 3; ++i) {
    int* p;
    CHECK(cudaMalloc(&p, bytes));  // FIRST
    if (!wrong) CHECK(cudaFree(p));
  }
}

__global__ void fill_one_more(int* p, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = value;  // SECOND
}

CASE(written_beyond_the_end) {  // out-of-range fill_one_more
  ints p;
  fill_one_more<<<5, 256>>>(p, wrong ? count : count - 1, 1);  // FIRST
}

__global__ void difference(int* to, const int* from, int first, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x + first;
  if (i < n) to[i] = from[i] - from[i - 1];  // SECOND
}

// Where nothing lies before the allocation, a GPU reports an illegal access.
CASE_ALONE(read_before_the_start) {  // out-of-range difference
  int *p, *q;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMemset(p, 0, bytes));
  CHECK(cudaMalloc(&q, bytes));
  difference<<<4, 256>>>(q, p, wrong ? 0 : 1, count);  // FIRST
  (void)cudaDeviceSynchronize();
  (void)cudaFree(p);
  (void)cudaFree(q);
  std::exit(0);
}

__global__ void sum_into_one(int* sum, const int* from, int n, bool atomic) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (atomic)
    atomicAdd(sum, from[i]);
  else if (threadIdx.x == 0)
    *sum += from[i];  // FIRST SECOND
}

CASE(sum_without_atomic) {  // block-race sum_into_one (not on GPUs)
  ints sum, p;
  sum_into_one<<<4, 256>>>(sum, p, count, !wrong);
}

__global__ void histogram(int* bins, const int* from, int n, bool atomic) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int bin = from[i] % 16;
  if (atomic)
    atomicAdd(bins + bin, 1);
  else if (i % 256 == 0)
    ++bins[bin];  // FIRST SECOND
}

CASE(histogram_without_atomic) {  // block-race histogram (not on GPUs)
  ints bins, p;
  histogram<<<4, 256>>>(bins, p, count, !wrong);
}

__global__ void smooth(int* to, const int* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int left = i > 0 && i < n && threadIdx.x == 0 ? from[i - 1] : 0;  // FIRST
  if (i < n) to[i] = left + 1;                                            // SECOND
}

CASE(stencil_in_place) {  // block-race smooth (not on GPUs)
  ints p, q;
  smooth<<<4, 256>>>(wrong ? q : p, q, count);
}

__global__ void two_steps(int* p, int* q, int n, bool wait) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = i;  // FIRST
  if (wait) cooperative_groups::this_grid().sync();
  q[i] = threadIdx.x == 0 ? p[n - 1 - i] : 0;  // SECOND
}

CASE(grid_without_barrier) {  // block-race two_steps (not on GPUs)
  ints p, q;
  int n = count;
  bool wait = !wrong;
  void* arguments[] = {&p.p, &q.p, &n, &wait};
  CHECK(cudaLaunchCooperativeKernel((const void*)two_steps, dim3(4), dim3(256), arguments, 0, cudaStreamLegacy));
}

__global__ void last_block_sums(int* sum, int* parts, int* done, bool atomic) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = blockIdx.x;  // FIRST
  __threadfence();
  if (atomic ? atomicAdd(done, 1) + 1 != gridDim.x : blockIdx.x + 1 != gridDim.x) return;
  __threadfence();
  int all = 0;
  for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // SECOND
  *sum = all;
}

CASE(last_block_without_counter) {  // block-race last_block_sums (not on GPUs)
  ints sum, parts, done;
  last_block_sums<<<4, 32>>>(sum, parts, done, !wrong);
}

__global__ void reverse(int* p, bool wait) {
  __shared__ int part[256];
  int* const mine = p + blockIdx.x * 256;
  part[threadIdx.x] = mine[threadIdx.x];  // FIRST
  if (wait) __syncthreads();
  mine[threadIdx.x] = part[255 - threadIdx.x];  // SECOND
}

CASE(barrier_is_missing) {  // shared-race reverse (not on GPUs)
  ints p;
  reverse<<<4, 256>>>(p, !wrong);
}

__global__ void total(int* sums, const int* p, bool wait) {
  __shared__ int part[256];
  part[threadIdx.x] = p[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];  // FIRST SECOND
    if (wait) __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

CASE(barrier_is_missing_in_a_loop) {  // shared-race total (not on GPUs)
  ints sums, p;
  total<<<4, 256>>>(sums, p, !wrong);
}

int main(int argc, char** argv) { return run_cases(argc, argv, wait_for_all); }
