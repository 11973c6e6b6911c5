// f16 and bf16 arithmetic, conversions, and matrix products by wmma.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
extern "C" __global__ void halves(const __half* a, const __half* b, __half* c, float* f, int* n) {
  const int i = threadIdx.x;
  const __half x = a[i], y = b[i];
  c[8 * i] = x + y; c[8 * i + 1] = x * y; c[8 * i + 2] = __hfma(x, y, x); c[8 * i + 3] = x - y; c[8 * i + 4] = __hmin(x, y); c[8 * i + 5] = hexp(x); c[8 * i + 6] = -x; c[8 * i + 7] = x / y;
  f[i] = __half2float(x) + (x < y) + 2 * (x == y) + 4 * __hisnan(x); n[i] = __half2int_rn(x) + __half2int_rz(y);
  __half2 p = __halves2half2(x, y), q = __half2half2(y); p = __hfma2(p, q, p); p = __hadd2(p, __hmul2(q, q)); f[i] += __low2float(p) - __high2float(p) + __hbgt2(p, q);
}
extern "C" __global__ void brains(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, float* f) {
  const int i = threadIdx.x;
#if __CUDA_ARCH__ >= 800
  const __nv_bfloat16 x = a[i], y = b[i];
  c[4 * i] = x + y; c[4 * i + 1] = x * y; c[4 * i + 2] = __hfma(x, y, x); c[4 * i + 3] = __hmax(x, y); f[i] = __bfloat162float(x) - (x > y);
#endif
}
using namespace nvcuda;
extern "C" __global__ void tensor(const __half* a, const __half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 1.0F); wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void tensor_half(const __half* a, const __half* b, __half* c) {
  __shared__ __half s[32 * 8];
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __half, wmma::col_major> fa; wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::row_major> fb; wmma::fragment<wmma::accumulator, 32, 8, 16, __half> fc;
  wmma::fill_fragment(fc, __half(0)); wmma::load_matrix_sync(fa, a, 32); wmma::load_matrix_sync(fb, b, 8); wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(s, fc, 32, wmma::mem_col_major);
  for (int i = threadIdx.x; i < 256; i += 32) c[i] = s[i];
}
extern "C" __global__ void tensor_int(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
  wmma::fill_fragment(fc, 5); wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void add_halves(const __half* a, const __half* b, __half* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void add_pairs(const __half2* a, const __half2* b, __half2* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
