// The kernels of spread_program.cpp. They use only one of 256 elements, because the stand-in interprets them.
extern "C" {

__constant__ float weights[4];
__device__ unsigned long long total;

__global__ void weigh(float* a, unsigned n) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  if (i >= n) return;
  a[i] *= weights[i / 256 % 4];
}

__global__ void add_up(const float* a, unsigned n) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  if (i < n) atomicAdd(&total, (unsigned long long)a[i]);
}

__global__ void add(const float* a, const float* b, float* c, unsigned n) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void diffuse(const float* now, float* next, unsigned nx, unsigned ny) {
  const unsigned x = (blockIdx.x * blockDim.x + threadIdx.x) * 16 + 1, y = (blockIdx.y * blockDim.y + threadIdx.y) * 16 + 1;
  const unsigned at = y * nx + x;
  next[at] = 0.5f * now[at] + 0.125f * (now[at - 1] + now[at + 1] + now[at - nx] + now[at + nx]);
}

__global__ void reverse(const float* from, float* to, unsigned n) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  if (i < n) to[i] = from[n - 1 - i] + 1;
}

__global__ void count(const float* values, unsigned* bins, unsigned n) {
  const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  if (i < n) atomicAdd(&bins[(unsigned)values[i] % 128], 1u);
}

__global__ void mark(float* a, unsigned distance) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  a[(size_t)i * distance] = i;
}
}
