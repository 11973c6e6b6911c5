// Every atomic operation, width and scope.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda/atomic>
extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d, __half2* h, __nv_bfloat162* b, long long* s) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(i, t); atomicSub(i + 1, t); atomicMin(i + 2, -t); atomicMax(i + 3, t); atomicExch(i + 4, t); atomicCAS(i + 5, 0, t + 1);
  atomicAdd(u, t); atomicInc(u + 1, 17); atomicDec(u + 2, 17); atomicAnd(u + 3, ~(1U << (t % 32))); atomicOr(u + 4, 1U << (t % 32)); atomicXor(u + 5, t);
  u[6 + t] = atomicAdd(u + 5, 0);
  atomicAdd(l, t); atomicMin(l + 1, t + 1); atomicMax(l + 2, t); atomicExch(l + 3, t); atomicCAS(l + 4, 0, t); atomicOr(l + 5, 1ULL << (t % 64));
  atomicMin(s, -t); atomicMax(s + 1, t); atomicAnd(l + 6, ~(1ULL << (t % 64))); atomicXor(l + 7, t);
  atomicAdd(f, 1.5F); atomicAdd(d, 0.5); atomicAdd(h, __float2half2_rn(1)); atomicAdd(b, __float2bfloat162_rn(1));
  atomicAdd_system(i + 6, 1); atomicAdd_block(i + 7, 1); atomicCAS_system(i + 8, 0, 1); atomicExch(f + 1, 2.0F);
  atomicAdd(reinterpret_cast<__half*>(h + 1), __float2half(1));
}
extern "C" __global__ void ordered(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag);
  if (blockIdx.x == 0 && threadIdx.x == 0) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 1) { while (f.load(cuda::memory_order_acquire) == 0) {} out[blockIdx.x] = data[0]; f.fetch_add(1, cuda::memory_order_relaxed); }
}
__device__ int locked = 0;
extern "C" __global__ void lock(int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(&locked, 0, 1) == 0) { volatile int* c = count; *c = *c + 1; __threadfence(); atomicExch(&locked, 0); done = true; }
  }
}
extern "C" __global__ void spin(volatile int* turn, int* order, int n) {
  while (*turn != n - 1 - int(threadIdx.x)) __nanosleep(100);
  order[*turn] = threadIdx.x;
  *turn = *turn + 1;
}
