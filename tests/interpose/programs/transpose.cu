// Transposes pitched memory through shared memory, and transposes it back.
#include <vector>

#include "check.h"

constexpr int tile = 32;

__global__ void transpose(const float* from, std::size_t from_pitch, float* to, std::size_t to_pitch, int width,
                          int height) {
  __shared__ float t[tile][tile + 1];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  if (x < width && y < height) t[threadIdx.y][threadIdx.x] = from[y * from_pitch + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
  if (x < height && y < width) to[y * to_pitch + x] = t[threadIdx.x][threadIdx.y];
}

int main() {
  for (const int width : {1, 33, 1000, 4096}) {
    const int height = width / 2 + 3;
    std::vector<float> in(std::size_t(width) * height), turned(in.size()), back(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i % 65521);
    float *a, *b;
    std::size_t a_pitch, b_pitch;
    CHECK(cudaMallocPitch(&a, &a_pitch, width * sizeof(float), height));
    CHECK(cudaMallocPitch(&b, &b_pitch, height * sizeof(float), width));
    CHECK(cudaMemcpy2D(a, a_pitch, in.data(), width * sizeof(float), width * sizeof(float), height,
                       cudaMemcpyHostToDevice));
    const dim3 block(tile, tile), there((width + tile - 1) / tile, (height + tile - 1) / tile), again(there.y, there.x);
    transpose<<<there, block>>>(a, a_pitch / sizeof(float), b, b_pitch / sizeof(float), width, height);
    CHECK(cudaMemcpy2D(turned.data(), height * sizeof(float), b, b_pitch, height * sizeof(float), width,
                       cudaMemcpyDeviceToHost));
    CHECK(cudaMemset2D(a, a_pitch, 0xff, width * sizeof(float), height));
    transpose<<<again, block>>>(b, b_pitch / sizeof(float), a, a_pitch / sizeof(float), height, width);
    CHECK(cudaMemcpy2D(back.data(), width * sizeof(float), a, a_pitch, width * sizeof(float), height,
                       cudaMemcpyDeviceToHost));
    std::printf("%d x %d: %016llx, back %s\n", width, height,
                (unsigned long long)digest(turned.data(), turned.size() * sizeof(float)),
                back == in ? "the same" : "WRONG");
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
  }
}
