#include "ordered_kernels.h"

namespace {

__device__ int number() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void add(int* values, int count, int what) {
  if (number() < count) values[number()] += what;
}

__global__ void twice(int* values, int count) {
  if (number() < count) values[number()] *= 2;
}

__global__ void far_away() { *reinterpret_cast<int*>(0x10) = 1; }

__global__ void fetch(cudaTextureObject_t texture, float* out, int count) {
  if (number() < count) out[number()] = tex1Dfetch<float>(texture, number());
}

__global__ void sample(cudaTextureObject_t texture, float* out, const float2* where, int count) {
  if (number() < count) out[number()] = tex2D<float>(texture, where[number()].x, where[number()].y);
}

__global__ void pick(cudaTextureObject_t texture, int4* out, const float2* where, int count) {
  if (number() < count) out[number()] = tex2D<int4>(texture, where[number()].x, where[number()].y);
}

// Returns a different value for each (x, y, z).
__device__ float value_at(int x, int y, int z) { return static_cast<float>(x + 32 * y + 1024 * z); }

__global__ void read(cudaTextureObject_t texture, float* out, const float4* where, int count, unsigned flags) {
  if (number() >= count) return;
  const float4 at = where[number()];
  const int w = static_cast<int>(at.w);
  float& to = out[number()];
  if ((flags & cudaArrayCubemap) != 0) {
    to = texCubemap<float>(texture, at.x, at.y, at.z);
  } else if ((flags & cudaArrayLayered) != 0) {
    to = at.y < 0 ? tex1DLayered<float>(texture, at.x, w) : tex2DLayered<float>(texture, at.x, at.y, w);
  } else {
    to = w == 1 ? tex1D<float>(texture, at.x) : tex3D<float>(texture, at.x, at.y, at.z);
  }
}

// Writes both channels of every element.
__global__ void fill(cudaSurfaceObject_t surface, int width, int height, int depth, unsigned flags, int channel) {
  const int rows = height == 0 ? 1 : height;
  const int planes = depth == 0 ? 1 : depth;
  const int x = number() % width, y = number() / width % rows, z = number() / width / rows;
  if (z >= planes) return;
  const float2 value = channel == 0 ? make_float2(value_at(x, y, z), -1) : make_float2(-1, value_at(x, y, z));
  const int bytes = x * static_cast<int>(sizeof value);
  if ((flags & cudaArrayLayered) != 0) {
    if (height == 0) surf1DLayeredwrite(value, surface, bytes, z);
    if (height != 0) surf2DLayeredwrite(value, surface, bytes, y, z);
  } else {
    if (height == 0) surf1Dwrite(value, surface, bytes);
    if (height != 0 && depth == 0) surf2Dwrite(value, surface, bytes, y);
    if (depth != 0) surf3Dwrite(value, surface, bytes, y, z);
  }
}

// Computes the sum of each element and its eight neighbours. mode: determines the value of reads outside the surface.
// Also writes one column outside the surface.
__global__ void blur(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height, int mode) {
  const int x = number() % (width + 1), y = number() / (width + 1);
  if (y >= height) return;
  short sum = 0;
  for (int j = -1; j <= 1; ++j) {
    for (int i = -1; i <= 1; ++i) {
      const int bytes = (x + i) * static_cast<int>(sizeof(short));
      sum += mode == cudaBoundaryModeZero ? surf2Dread<short>(from, bytes, y + j, cudaBoundaryModeZero)
                                          : surf2Dread<short>(from, bytes, y + j, cudaBoundaryModeClamp);
    }
  }
  surf2Dwrite(sum, to, x * static_cast<int>(sizeof(short)), y, cudaBoundaryModeZero);
}

template <class Kernel>
const void* address(Kernel* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

int blocks(int count) { return (count + 127) / 128; }

}  // namespace

const void* kernel_add_to() { return address(add); }
const void* kernel_double() { return address(twice); }
const void* kernel_far_away() { return address(far_away); }
const void* kernel_fetch() { return address(fetch); }
const void* kernel_sample() { return address(sample); }
const void* kernel_pick() { return address(pick); }
const void* kernel_read() { return address(read); }
const void* kernel_fill() { return address(fill); }
const void* kernel_blur() { return address(blur); }

cudaError_t add_to(int* values, int count, int what, cudaStream_t stream) {
  cudaGetLastError();  // an earlier query may have left cudaErrorNotReady
  add<<<blocks(count), 128, 0, stream>>>(values, count, what);
  return cudaGetLastError();
}

cudaError_t double_all(int* values, int count, cudaStream_t stream) {
  cudaGetLastError();
  twice<<<blocks(count), 128, 0, stream>>>(values, count);
  return cudaGetLastError();
}
