// The math library in both precisions, integer intrinsics, textures, asynchronous copies, video instructions.
#include <cuda_pipeline.h>
extern "C" __global__ void math32(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  float* r = y + 40 * i; int e;
  r[0] = sinf(v); r[1] = cosf(v); r[2] = tanf(v); r[3] = expf(v); r[4] = logf(v); r[5] = powf(v, 1.7F); r[6] = sqrtf(v); r[7] = rsqrtf(v); r[8] = cbrtf(v); r[9] = erff(v);
  r[10] = tgammaf(v); r[11] = asinf(v); r[12] = atan2f(v, 2); r[13] = sinhf(v); r[14] = fmodf(v, 0.7F); r[15] = remainderf(v, 0.7F); r[16] = floorf(v); r[17] = rintf(v); r[18] = truncf(v); r[19] = roundf(v);
  r[20] = __sinf(v); r[21] = __expf(v); r[22] = __fdividef(v, 3); r[23] = __frcp_rz(v); r[24] = __fsqrt_ru(v); r[25] = __fadd_rd(v, 0.1F); r[26] = __fmaf_rz(v, v, v); r[27] = __saturatef(v); r[28] = frexpf(v, &e); r[29] = e;
  r[30] = fminf(v, 1); r[31] = fmaxf(v, 1); r[32] = copysignf(v, -1); r[33] = hypotf(v, 1); r[34] = __int_as_float(__float_as_int(v) ^ 1); r[35] = isnan(v) + 2 * isinf(v) + 4 * signbit(v); r[36] = __fdiv_rn(v, 7); r[37] = lgammaf(v); r[38] = j0f(v); r[39] = exp2f(v) + exp10f(v) + log2f(v) + __log2f(v) + __cosf(v) + ldexpf(v, 3);
}
extern "C" __global__ void math64(const double* x, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
  double* r = y + 24 * i;
  r[0] = sin(v); r[1] = cos(v); r[2] = tan(v); r[3] = exp(v); r[4] = log(v); r[5] = pow(v, 1.7); r[6] = sqrt(v); r[7] = rsqrt(v); r[8] = cbrt(v); r[9] = erf(v); r[10] = fmod(v, 0.7); r[11] = floor(v); r[12] = rint(v);
  r[13] = __dadd_ru(v, 0.1); r[14] = __ddiv_rz(v, 3); r[15] = __dsqrt_rd(v); r[16] = __fma_rz(v, v, v); r[17] = fmin(v, 1.0); r[18] = atan(v); r[19] = __double2float_rz(v); r[20] = __double2int_rn(v); r[21] = __double2ull_ru(v); r[22] = __hiloint2double(__double2hiint(v), 5); r[23] = 1 / v;
}
extern "C" __global__ void integers(const unsigned* a, const unsigned* b, unsigned long long* y) {
  const int i = threadIdx.x; const unsigned p = a[i], q = b[i]; const int s = p, u = q; const unsigned long long P = (static_cast<unsigned long long>(p) << 32) | q, Q = q * 77ULL + 3; unsigned long long* r = y + 48 * i;
  r[0] = __umulhi(p, q); r[1] = __mulhi(s, u); r[2] = __umul64hi(P, Q); r[3] = __clz(p); r[4] = __clzll(P); r[5] = __popc(p); r[6] = __popcll(P); r[7] = __brev(p); r[8] = __brevll(P); r[9] = __ffs(p); r[10] = __byte_perm(p, q, 0x5140 + (q & 7)); r[11] = __funnelshift_l(p, q, q); r[12] = __funnelshift_rc(p, q, q % 64);
  r[13] = __sad(s, u, p); r[14] = __usad(p, q, 5); r[15] = p / (q | 1); r[16] = s / (u | 1); r[17] = p % (q | 1); r[18] = P / (Q | 1); r[19] = static_cast<long long>(P) % static_cast<long long>(Q | 1); r[20] = __dp4a(s, u, 7); r[21] = __dp2a_lo(s, u, 7); r[22] = __vabsdiffu4(p, q); r[23] = __vadd4(p, q); r[24] = min(s, u); r[25] = max(p, q); r[26] = abs(s); r[27] = __hadd(s, u); r[28] = __mul24(s, u); r[29] = __umul24(p, q);
  r[30] = static_cast<unsigned __int128>(P) * Q >> 70; r[31] = static_cast<unsigned long long>((static_cast<unsigned __int128>(P) * Q + P) >> 64); r[32] = __float2int_rn(__uint2float_rz(p)); r[33] = __double_as_longlong(__ll2double_rd(P)); r[34] = p >> (q & 31); r[35] = s >> (q & 31); r[36] = P << (q & 63); r[37] = __vcmpgtu4(p, q); r[38] = __vmaxs2(p, q); r[39] = __vsetleu2(p, q); r[40] = (p & 0xff0) >> 4; r[41] = (s << 8) >> 12; r[42] = __fns(p, 0, 2); r[43] = __byte_perm(p, 0, 0x0123); r[44] = __uint_as_float(p) < __uint_as_float(q); r[45] = static_cast<unsigned short>(p) * static_cast<unsigned short>(q); r[46] = static_cast<short>(p) / static_cast<short>(q | 1); r[47] = ~p ^ (p | q) & 3;
}
extern "C" __global__ void textures(cudaTextureObject_t line, cudaTextureObject_t plane, cudaTextureObject_t buffer, float* out) {
  const int i = threadIdx.x;
  out[4 * i] = tex1D<float>(line, i + 0.25F); out[4 * i + 1] = tex2D<float>(plane, i * 0.5F, i * 0.25F); out[4 * i + 2] = tex1Dfetch<float>(buffer, i); const float4 v = tex2D<float4>(plane, 1.5F, i); out[4 * i + 3] = v.x;
}
extern "C" __global__ void copies(const float4* in, float4* out) {
  __shared__ float4 buffer[128];
  __pipeline_memcpy_async(&buffer[threadIdx.x], &in[blockIdx.x * 128 + threadIdx.x], sizeof(float4)); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] = buffer[127 - threadIdx.x];
}
extern "C" __global__ void clocks(long long* out) { out[0] = clock64(); out[1] = clock(); unsigned s; asm("mov.u32 %0, %%smid;" : "=r"(s)); out[2] = s; __threadfence_system(); __threadfence_block(); }
