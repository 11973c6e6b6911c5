// The 25-point wave step: eighth order in space, second in time; coefficients in constant memory.
__constant__ float coefficients[5];
extern "C" __global__ void stencil(const float* now, float* next, const float* velocity, int nx, int ny, int nz) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x + 4;
  const int y = blockIdx.y * blockDim.y + threadIdx.y + 4;
  if (x >= nx - 4 || y >= ny - 4) return;
  const long row = nx, plane = static_cast<long>(nx) * ny;
  for (int z = 4; z < nz - 4; ++z) {
    const long i = z * plane + y * row + x;
    float sum = 3 * coefficients[0] * now[i];
#pragma unroll
    for (int r = 1; r <= 4; ++r) {
      sum += coefficients[r] * (now[i - r] + now[i + r] + now[i - r * row] + now[i + r * row] + now[i - r * plane] + now[i + r * plane]);
    }
    next[i] = 2 * now[i] - next[i] + velocity[i] * sum;
  }
}
