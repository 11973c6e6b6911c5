// Arrays, copies to and from arrays, textures and surfaces.
#include <vector>

#include "check.h"

__global__ void sample(cudaTextureObject_t texture, cudaSurfaceObject_t surface, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float v = tex2D<float>(texture, x + 0.5f, y + 0.5f);
  out[y * width + x] = v;
  surf2Dwrite(v * 2, surface, x * int(sizeof(float)), y);
}

int main() {
  constexpr int width = 1024, height = 700;
  std::vector<float> in(width * height), out(in.size()), written(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i % 4099);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t from, to;
  CHECK(cudaMallocArray(&from, &format, width, height));
  CHECK(cudaMallocArray(&to, &format, width, height, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(from, 0, 0, in.data(), width * sizeof(float), width * sizeof(float), height,
                            cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = from;
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  resource.res.array.array = to;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  float* device;
  CHECK(cudaMalloc(&device, in.size() * sizeof(float)));
  sample<<<dim3(width / 32, (height + 7) / 8), dim3(32, 8)>>>(texture, surface, device, width, height);
  CHECK(cudaMemcpy(out.data(), device, in.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy2DFromArray(written.data(), width * sizeof(float), to, 0, 0, width * sizeof(float), height,
                              cudaMemcpyDeviceToHost));
  std::printf("texture %s, surface %016llx\n", out == in ? "the same" : "WRONG",
              (unsigned long long)digest(written.data(), written.size() * sizeof(float)));
}
