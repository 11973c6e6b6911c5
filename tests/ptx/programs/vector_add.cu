// One element per thread; scalar and vector accesses of all widths, and arithmetic in double precision.
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void vector_add4(const float4* a, const float4* b, float4* c, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}
template <class T>
__device__ void add_all(const T* a, const T* b, T* c, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = static_cast<T>(a[i] + b[i]);
}
extern "C" __global__ void add_u8(const unsigned char* a, const unsigned char* b, unsigned char* c, unsigned n) { add_all(a, b, c, n); }
extern "C" __global__ void add_s8(const signed char* a, const signed char* b, signed char* c, unsigned n) { add_all(a, b, c, n); }
extern "C" __global__ void add_u16(const unsigned short* a, const unsigned short* b, unsigned short* c, unsigned n) { add_all(a, b, c, n); }
extern "C" __global__ void add_u64(const unsigned long long* a, const unsigned long long* b, unsigned long long* c, unsigned n) { add_all(a, b, c, n); }
extern "C" __global__ void add_f64(const double* a, const double* b, double* c, unsigned n) { add_all(a, b, c, n); }
extern "C" __global__ void polynomial(const double* x, double* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int k = 0; k < 32; ++k) sum = fma(sum, x[i], 1.0 / (1 + k));
  y[i] = sum;
}
