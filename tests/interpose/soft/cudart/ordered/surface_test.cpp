#include <algorithm>
#include <random>

#include "common.h"

namespace {

const cudaChannelFormatDesc pairs{32, 32, 0, 0, cudaChannelFormatKindFloat};
const cudaChannelFormatDesc shorts{16, 0, 0, 0, cudaChannelFormatKindSigned};

/// An array with a surface object, through which kernels write it.
class written_array {
 public:
  written_array(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags = 0) {
    EXPECT_CUDA(cudaMalloc3DArray(&array_, &format, extent, flags | cudaArraySurfaceLoadStore));
    const cudaResourceDesc what = resource();
    EXPECT_CUDA(cudaCreateSurfaceObject(&surface_, &what));
  }
  ~written_array() {
    EXPECT_CUDA(cudaDestroySurfaceObject(surface_));
    EXPECT_CUDA(cudaFreeArray(array_));
  }
  written_array(const written_array&) = delete;
  written_array& operator=(const written_array&) = delete;

  cudaArray_t array() const { return array_; }
  cudaSurfaceObject_t surface() const { return surface_; }
  cudaResourceDesc resource() const {
    cudaResourceDesc what{};
    what.resType = cudaResourceTypeArray;
    what.res.array.array = array_;
    return what;
  }

 private:
  cudaArray_t array_ = nullptr;
  cudaSurfaceObject_t surface_ = 0;
};

struct form {
  const char* name;
  cudaExtent extent;
  unsigned flags;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const form& f, std::ostream* out) { *out << f.name; }

class Forms : public testing::TestWithParam<form> {};

float value_at(int x, int y, int z) { return static_cast<float>(x + 32 * y + 1024 * z); }

// Copies and textures see the elements that kernels write through a surface.
TEST_P(Forms, AreWrittenBySurfacesAndReadByTextures) {
  form f = GetParam();
  const written_array it(pairs, f.extent, f.flags);
  int width = static_cast<int>(f.extent.width);
  int height = static_cast<int>(f.extent.height);
  int depth = static_cast<int>(f.extent.depth);
  const int rows = std::max(height, 1);
  const int planes = std::max(depth, 1);
  const int count = width * rows * planes;
  cudaSurfaceObject_t surface = it.surface();
  int channel = 0;
  void* arguments[] = {&surface, &width, &height, &depth, &f.flags, &channel};
  const dim3 blocks(static_cast<unsigned>((count + 63) / 64));
  ASSERT_CUDA(cudaLaunchKernel(kernel_fill(), blocks, {64, 1, 1}, arguments, 0, nullptr));

  std::vector<float2> copied(static_cast<std::size_t>(count), float2{-7, -7});
  cudaMemcpy3DParms copy{};
  copy.srcArray = it.array();
  copy.extent = {f.extent.width, static_cast<std::size_t>(rows), static_cast<std::size_t>(planes)};
  copy.dstPtr = {copied.data(), f.extent.width * sizeof(float2), f.extent.width, copy.extent.height};
  copy.kind = cudaMemcpyDeviceToHost;
  ASSERT_CUDA(cudaMemcpy3D(&copy));
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(copied[i].x, value_at(i % width, i / width % rows, i / width / rows)) << i;
    ASSERT_EQ(copied[i].y, -1) << i;
  }

  cudaTextureDesc description{};
  for (auto& mode : description.addressMode) mode = cudaAddressModeClamp;
  cudaTextureObject_t texture = 0;
  const cudaResourceDesc resource = it.resource();
  ASSERT_CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  if (height == 0 || depth != 0) {  // texture_test.cpp reads two dimensions
    const bool is_layered = (f.flags & cudaArrayLayered) != 0;
    std::vector<float4> where;
    for (int i = 0; i < count; ++i) {
      const auto center = [](int n) { return static_cast<float>(n) + 0.5F; };
      const int z = i / width / rows;
      where.push_back({center(i % width), height == 0 ? -1 : center(i / width % rows), center(z),
                       static_cast<float>(is_layered    ? z
                                          : height == 0 ? 1
                                                        : 3)});
    }
    const on_device<float4> points(where.size());
    const on_device<float> out(where.size());
    to_device(points.data(), where);
    float* to = out.data();
    float4* from = points.data();
    int number = count;
    void* reads[] = {&texture, &to, &from, &number, &f.flags};
    ASSERT_CUDA(cudaLaunchKernel(kernel_read(), blocks, {64, 1, 1}, reads, 0, nullptr));
    const auto read = from_device(out.data(), where.size());
    for (int i = 0; i < count; ++i) ASSERT_EQ(read[i], copied[i].x) << i;
  }
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
}

INSTANTIATE_TEST_SUITE_P(All, Forms,
                         testing::Values(form{"line", {31, 0, 0}, 0}, form{"plane", {17, 5, 0}, 0},
                                         form{"volume", {9, 7, 5}, 0}, form{"lines", {13, 0, 3}, cudaArrayLayered},
                                         form{"planes", {11, 6, 4}, cudaArrayLayered}, form{"element", {1, 1, 1}, 0}),
                         [](const testing::TestParamInfo<form>& f) { return std::string(f.param.name); });

TEST(Surface, OutsideIsClampedOrZeroAndNotWritten) {
  int width = 23;
  int height = 6;
  const cudaExtent extent{23, 6, 0};
  const written_array from(shorts, extent);
  const written_array to(shorts, extent);
  std::mt19937 random(std::random_device{}());
  std::vector<short> in(static_cast<std::size_t>(width) * height);
  for (short& each : in) each = static_cast<short>(random() % 3000);
  const std::size_t row = width * sizeof(short);
  ASSERT_CUDA(cudaMemcpy2DToArray(from.array(), 0, 0, in.data(), row, row, height, cudaMemcpyHostToDevice));
  for (int mode : {cudaBoundaryModeZero, cudaBoundaryModeClamp}) {
    cudaSurfaceObject_t source = from.surface();
    cudaSurfaceObject_t target = to.surface();
    void* arguments[] = {&source, &target, &width, &height, &mode};
    ASSERT_CUDA(cudaLaunchKernel(kernel_blur(), {6, 1, 1}, {64, 1, 1}, arguments, 0, nullptr));
    std::vector<short> out(in.size(), -1);
    ASSERT_CUDA(cudaMemcpy2DFromArray(out.data(), row, to.array(), 0, 0, row, height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        int sum = 0;
        for (int k = 0; k < 9; ++k) {
          const int i = x + k % 3 - 1;
          const int j = y + k / 3 - 1;
          const bool inside = i >= 0 && i < width && j >= 0 && j < height;
          if (inside || mode == cudaBoundaryModeClamp)
            sum += in[std::clamp(j, 0, height - 1) * width + std::clamp(i, 0, width - 1)];
        }
        ASSERT_EQ(out[y * width + x], static_cast<short>(sum)) << x << ' ' << y << ' ' << mode;
      }
    }
  }
}

TEST(Surface, IsKnownByItsHandle) {
  const written_array it(shorts, {8, 0, 0});
  cudaResourceDesc told{};
  ASSERT_CUDA(cudaGetSurfaceObjectResourceDesc(&told, it.surface()));
  EXPECT_EQ(told.resType, cudaResourceTypeArray);
  EXPECT_EQ(told.res.array.array, it.array());
  EXPECT_FAILS(cudaGetSurfaceObjectResourceDesc(nullptr, it.surface()), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGetSurfaceObjectResourceDesc(&told, it.surface() + 8), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDestroyTextureObject(it.surface()), cudaErrorInvalidValue);  // a surface is not a texture
  cudaSurfaceObject_t other = 0;
  const cudaResourceDesc resource = it.resource();
  ASSERT_CUDA(cudaCreateSurfaceObject(&other, &resource));
  EXPECT_NE(other, it.surface());
  EXPECT_CUDA(cudaDestroySurfaceObject(other));
  EXPECT_FAILS(cudaDestroySurfaceObject(other), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDestroySurfaceObject(0));
}

TEST(Surface, IsOfAnArrayThatWasMadeForIt) {
  cudaArray_t plain = nullptr;
  ASSERT_CUDA(cudaMallocArray(&plain, &shorts, 8, 8, 0));
  cudaSurfaceObject_t made = 0;
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = plain;
  EXPECT_FAILS(cudaCreateSurfaceObject(&made, &resource), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaCreateSurfaceObject(nullptr, &resource), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaCreateSurfaceObject(&made, nullptr), cudaErrorInvalidValue);
  resource.res.array.array = nullptr;
  EXPECT_FAILS(cudaCreateSurfaceObject(&made, &resource), cudaErrorInvalidResourceHandle);
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = &made;
  resource.res.linear.desc = shorts;
  resource.res.linear.sizeInBytes = 64;
  EXPECT_FAILS(cudaCreateSurfaceObject(&made, &resource), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeArray(plain));
}

TEST(Array, OfLayersHasTheirNumber) {
  cudaArray_t array = nullptr;
  EXPECT_FAILS(cudaMalloc3DArray(&array, &shorts, {8, 8, 0}, cudaArrayLayered), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocArray(&array, &shorts, 8, 8, cudaArrayLayered), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMalloc3DArray(&array, &shorts, {8, 0, 8}, 0), cudaErrorInvalidValue);
  for (const cudaExtent& no_cube : {cudaExtent{8, 8, 5}, cudaExtent{8, 7, 6}, cudaExtent{8, 8, 12}})
    EXPECT_FAILS(cudaMalloc3DArray(&array, &shorts, no_cube, cudaArrayCubemap), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaMalloc3DArray(&array, &shorts, {8, 8, 12}, cudaArrayCubemap | cudaArrayLayered));
  EXPECT_CUDA(cudaFreeArray(array));
  ASSERT_CUDA(cudaMalloc3DArray(&array, &shorts, {8, 0, 5}, cudaArrayLayered));
  cudaChannelFormatDesc format{};
  cudaExtent extent{};
  unsigned flags = 0;
  ASSERT_CUDA(cudaArrayGetInfo(&format, &extent, &flags, array));
  EXPECT_EQ(extent.depth, 5U);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaArrayLayered));
  EXPECT_CUDA(cudaFreeArray(array));
}

}  // namespace
