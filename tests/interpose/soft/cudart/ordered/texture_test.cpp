#include <cmath>
#include <numeric>

#include "common.h"

namespace {

constexpr int width = 19;
constexpr int height = 7;
const cudaChannelFormatDesc floats{32, 0, 0, 0, cudaChannelFormatKindFloat};

float value_at(int x, int y) { return static_cast<float>(100 * y + x); }

class Texture : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<float> in(static_cast<std::size_t>(width) * height);
    for (int i = 0; i < width * height; ++i) in[i] = value_at(i % width, i / width);
    ASSERT_CUDA(cudaMallocArray(&array_, &floats, width, height, 0));
    ASSERT_CUDA(cudaMemcpy2DToArray(array_, 0, 0, in.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    resource_.resType = cudaResourceTypeArray;
    resource_.res.array.array = array_;
    description_.addressMode[0] = description_.addressMode[1] = cudaAddressModeClamp;
  }
  void TearDown() override { EXPECT_CUDA(cudaFreeArray(array_)); }

  cudaTextureObject_t make() {
    cudaTextureObject_t made = 0;
    EXPECT_CUDA(cudaCreateTextureObject(&made, &resource_, &description_, nullptr));
    return made;
  }

  template <class T>
  std::vector<T> read(const void* kernel, cudaTextureObject_t texture, const std::vector<float2>& where) {
    const on_device<float2> points(where.size());
    const on_device<T> out(where.size());
    to_device(points.data(), where);
    float2* from = points.data();
    T* to = out.data();
    int count = static_cast<int>(where.size());
    void* arguments[] = {&texture, &to, &from, &count};
    EXPECT_CUDA(cudaLaunchKernel(kernel, {1, 1, 1}, {64, 1, 1}, arguments, 0, nullptr));
    return from_device(out.data(), where.size());
  }

  cudaArray_t array_ = nullptr;
  cudaResourceDesc resource_{};
  cudaTextureDesc description_{};
};

TEST_F(Texture, ReadsElementsOfAnArray) {
  const cudaTextureObject_t texture = make();
  const auto out = read<float>(kernel_sample(), texture, {{0.5F, 0.5F}, {3.9F, 2.1F}, {-5, 100}, {100, -3}});
  EXPECT_EQ(out, (std::vector<float>{value_at(0, 0), value_at(3, 2), value_at(0, height - 1), value_at(width - 1, 0)}));
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  ASSERT_CUDA(cudaGetTextureObjectResourceDesc(&resource, texture));
  ASSERT_CUDA(cudaGetTextureObjectTextureDesc(&description, texture));
  EXPECT_EQ(resource.res.array.array, array_);
  EXPECT_EQ(description.addressMode[1], cudaAddressModeClamp);
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
  EXPECT_FAILS(cudaGetTextureObjectTextureDesc(&description, texture), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
}

TEST_F(Texture, FiltersBetweenElements) {
  description_.filterMode = cudaFilterModeLinear;
  const cudaTextureObject_t texture = make();
  const auto out = read<float>(kernel_sample(), texture, {{4.5F, 3.5F}, {5, 3.5F}, {5, 4}, {4.75F, 3.5F}});
  EXPECT_EQ(out, (std::vector<float>{304, 304.5F, 354.5F, 304.25F}));
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
}

TEST_F(Texture, TakesNormalizedCoordinatesAndWraps) {
  description_.normalizedCoords = 1;
  description_.addressMode[0] = cudaAddressModeWrap;
  description_.addressMode[1] = cudaAddressModeBorder;
  const cudaTextureObject_t texture = make();
  const auto out = read<float>(kernel_sample(), texture,
                               {{2.5F / width, 1.5F / height}, {1 + 2.5F / width, 1.5F / height}, {0.5F, 1.5F}});
  EXPECT_EQ(out, (std::vector<float>{value_at(2, 1), value_at(2, 1), 0}));
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
}

TEST_F(Texture, HasABorder) {
  description_.addressMode[0] = description_.addressMode[1] = cudaAddressModeBorder;
  description_.borderColor[0] = 0.75F;
  const cudaTextureObject_t texture = make();
  const auto out = read<float>(kernel_sample(), texture, {{-0.5F, 0.5F}, {0.5F, height + 0.5F}, {1.5F, 0.5F}});
  EXPECT_EQ(out, (std::vector<float>{0.75F, 0.75F, value_at(1, 0)}));
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
}

TEST_F(Texture, ReadsLinearMemory) {
  constexpr int count = 77;
  const on_device<float> memory(count);
  std::vector<float> in(count);
  for (int i = 0; i < count; ++i) in[i] = std::sqrt(static_cast<float>(i));
  to_device(memory.data(), in);
  resource_ = {};
  resource_.resType = cudaResourceTypeLinear;
  resource_.res.linear.devPtr = memory.data();
  resource_.res.linear.desc = floats;
  resource_.res.linear.sizeInBytes = count * sizeof(float);
  cudaTextureObject_t texture = make();
  const on_device<float> out(count + 3);
  float* to = out.data();
  int number = count + 3;
  void* arguments[] = {&texture, &to, &number};
  ASSERT_CUDA(cudaLaunchKernel(kernel_fetch(), {2, 1, 1}, {64, 1, 1}, arguments, 0, nullptr));
  in.resize(count + 3, 0);  // elements outside the texture are read as 0
  EXPECT_EQ(from_device(out.data(), count + 3), in);
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
}

TEST_F(Texture, ReadsIntegersOfPitchedMemory) {
  char* memory = nullptr;
  std::size_t pitch = 0;
  ASSERT_CUDA(cudaMallocPitch(reinterpret_cast<void**>(&memory), &pitch, width * 4, height));
  std::vector<signed char> in(static_cast<std::size_t>(width) * height * 4);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<signed char>(i * 5);
  ASSERT_CUDA(cudaMemcpy2D(memory, pitch, in.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
  resource_ = {};
  resource_.resType = cudaResourceTypePitch2D;
  resource_.res.pitch2D.devPtr = memory;
  resource_.res.pitch2D.desc = {8, 8, 8, 8, cudaChannelFormatKindSigned};
  resource_.res.pitch2D.width = width;
  resource_.res.pitch2D.height = height;
  resource_.res.pitch2D.pitchInBytes = pitch;
  const cudaTextureObject_t texture = make();
  const auto out = read<int4>(kernel_pick(), texture, {{6.5F, 4.5F}});
  const auto* const expected = &in[(4 * width + 6) * 4];
  EXPECT_EQ(out[0].x, expected[0]);
  EXPECT_EQ(out[0].y, expected[1]);
  EXPECT_EQ(out[0].z, expected[2]);
  EXPECT_EQ(out[0].w, expected[3]);
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
  EXPECT_CUDA(cudaFree(memory));
}

/// An array of three dimensions, or a cube, whose elements are the numbers from 1 on.
class deep_array {
 public:
  deep_array(const cudaExtent& extent, unsigned flags) {
    std::vector<float> in(extent.width * extent.height * extent.depth);
    std::iota(in.begin(), in.end(), 1.0F);
    EXPECT_CUDA(cudaMalloc3DArray(&handle_, &floats, extent, flags));
    cudaMemcpy3DParms copy{};
    copy.srcPtr = {in.data(), extent.width * sizeof(float), extent.width, extent.height};
    copy.dstArray = handle_;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    EXPECT_CUDA(cudaMemcpy3D(&copy));
  }
  ~deep_array() { EXPECT_CUDA(cudaFreeArray(handle_)); }
  deep_array(const deep_array&) = delete;
  deep_array& operator=(const deep_array&) = delete;

  /// Reads the array at these points with a texture of this description.
  [[nodiscard]] std::vector<float> read(const cudaTextureDesc& description, const std::vector<float4>& where,
                                        unsigned flags) const {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = handle_;
    cudaTextureObject_t texture = 0;
    EXPECT_CUDA(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    const on_device<float4> points(where.size());
    const on_device<float> out(where.size());
    to_device(points.data(), where);
    float4* from = points.data();
    float* to = out.data();
    int count = static_cast<int>(where.size());
    void* arguments[] = {&texture, &to, &from, &count, &flags};
    EXPECT_CUDA(cudaLaunchKernel(kernel_read(), {1, 1, 1}, {64, 1, 1}, arguments, 0, nullptr));
    auto result = from_device(out.data(), where.size());
    EXPECT_CUDA(cudaDestroyTextureObject(texture));
    return result;
  }

 private:
  cudaArray_t handle_ = nullptr;
};

TEST(DeepTexture, EachDimensionHasItsAddressMode) {
  const deep_array array({5, 4, 3}, 0);
  for (int axis = 0; axis < 3; ++axis) {
    cudaTextureDesc description{};
    for (int i = 0; i < 3; ++i) description.addressMode[i] = i == axis ? cudaAddressModeBorder : cudaAddressModeClamp;
    std::vector<float> expected{5, 16, 41};  // the last element of the first row, of the first column, and in depth
    expected[static_cast<std::size_t>(axis)] = 0;
    const std::vector<float4> beyond{{5.5F, 0.5F, 0.5F, 3}, {0.5F, 4.5F, 0.5F, 3}, {0.5F, 0.5F, 3.5F, 3}};
    EXPECT_EQ(array.read(description, beyond, 0), expected) << "dimension " << axis;
  }
}

TEST(DeepTexture, ACubeIsFilteredAcrossItsEdgesIfItIsSeamless) {
  const deep_array cube({1, 1, 6}, cudaArrayCubemap);  // face n has the number n + 1
  cudaTextureDesc description{};
  description.filterMode = cudaFilterModeLinear;
  description.normalizedCoords = 1;
  const std::vector<float4> middle_and_edge{{1, 0, 0, 0}, {1, 0, 1, 0}};  // of face 0, and between the faces 0 and 4
  description.seamlessCubemap = 1;
  EXPECT_EQ(cube.read(description, middle_and_edge, cudaArrayCubemap), (std::vector<float>{1, 3}));
  description.seamlessCubemap = 0;
  const std::vector<float> apart = cube.read(description, middle_and_edge, cudaArrayCubemap);
  EXPECT_EQ(apart[0], 1);
  EXPECT_TRUE(apart[1] == 1 || apart[1] == 5) << apart[1];
}

TEST_F(Texture, RefusesArraysThatItCannotRead) {
  cudaTextureObject_t texture = 0;
  const auto create = [&] { return cudaCreateTextureObject(&texture, &resource_, &description_, nullptr); };
  description_.sRGB = 1;
  EXPECT_FAILS(create(), cudaErrorInvalidValue);  // sRGB requires 8-bit elements
  description_.sRGB = 0;
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatFloat1;
  EXPECT_FAILS(cudaCreateTextureObject(&texture, &resource_, &description_, &view), cudaErrorNotSupported);
  resource_.resType = cudaResourceTypeMipmappedArray;
  EXPECT_FAILS(create(), cudaErrorInvalidValue);  // the resource is not a mipmapped array
  resource_.resType = cudaResourceTypeLinear;
  resource_.res.linear.devPtr = nullptr;
  resource_.res.linear.desc = floats;
  resource_.res.linear.sizeInBytes = 4;
  EXPECT_FAILS(create(), cudaErrorInvalidValue);
  resource_.res.linear.devPtr = &texture;
  resource_.res.linear.desc = {32, 0, 0, 0, cudaChannelFormatKindSigned};
  description_.filterMode = cudaFilterModeLinear;
  EXPECT_FAILS(create(), cudaErrorInvalidValue);  // integers cannot be filtered
  EXPECT_FAILS(cudaCreateTextureObject(&texture, nullptr, &description_, nullptr), cudaErrorInvalidValue);
}

TEST_F(Texture, TellsWhatItWasMadeOf) {
  cudaResourceViewDesc view{};
  view.width = 19;
  view.depth = 3;
  cudaTextureObject_t texture = 0;
  ASSERT_CUDA(cudaCreateTextureObject(&texture, &resource_, &description_, &view));
  cudaResourceViewDesc told{};
  ASSERT_CUDA(cudaGetTextureObjectResourceViewDesc(&told, texture));
  EXPECT_EQ(told.width, 19U);
  EXPECT_EQ(told.depth, 3U);
  EXPECT_FAILS(cudaGetTextureObjectResourceViewDesc(nullptr, texture), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGetTextureObjectResourceDesc(nullptr, texture), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGetTextureObjectTextureDesc(nullptr, texture), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDestroyTextureObject(texture));
  cudaResourceDesc resource{};
  EXPECT_FAILS(cudaGetTextureObjectResourceDesc(&resource, texture), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDestroyTextureObject(0));
  const cudaTextureObject_t plain = make();
  EXPECT_FAILS(cudaGetTextureObjectResourceViewDesc(&told, plain), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDestroyTextureObject(plain));
  EXPECT_FAILS(cudaCreateTextureObject(nullptr, &resource_, &description_, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaCreateTextureObject(&texture, &resource_, nullptr, nullptr), cudaErrorInvalidValue);
}

TEST_F(Texture, EachSettingThatCannotBeIsRefusedAlone) {
  cudaTextureObject_t texture = 0;
  const auto made = [&](const cudaChannelFormatDesc& format, const auto& change) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, 4096));
    resource_ = {};
    resource_.resType = cudaResourceTypePitch2D;
    resource_.res.pitch2D.devPtr = memory;
    resource_.res.pitch2D.desc = format;
    resource_.res.pitch2D.width = 8;
    resource_.res.pitch2D.height = 4;
    resource_.res.pitch2D.pitchInBytes = 8U * static_cast<unsigned>(format.x + format.y + format.z + format.w) / 8;
    description_ = {};
    change(resource_.res.pitch2D, description_);
    const cudaError_t error = cudaCreateTextureObject(&texture, &resource_, &description_, nullptr);
    if (error == cudaSuccess) cudaDestroyTextureObject(texture);
    cudaGetLastError();
    EXPECT_CUDA(cudaFree(memory));
    return error;
  };
  const cudaChannelFormatDesc bytes{8, 8, 0, 0, cudaChannelFormatKindUnsigned};
  const cudaChannelFormatDesc ints{32, 0, 0, 0, cudaChannelFormatKindSigned};
  const cudaChannelFormatDesc shorts{16, 0, 0, 0, cudaChannelFormatKindUnsigned};
  for (const auto& each : {bytes, ints, shorts, floats}) {
    EXPECT_EQ(made(each, [](auto&, auto&) {}), cudaSuccess);
    EXPECT_EQ(made(each, [](auto& r, auto&) { r.pitchInBytes -= 1; }), cudaErrorInvalidValue);
    EXPECT_EQ(made(each, [](auto& r, auto&) { r.height = 0; }), cudaErrorInvalidValue);
    EXPECT_EQ(made(each, [](auto& r, auto&) { r.width = 0; }), cudaErrorInvalidValue);
    EXPECT_EQ(made(each, [](auto& r, auto&) { r.devPtr = nullptr; }), cudaErrorInvalidValue);
    for (int i = 0; i < 3; ++i) {
      for (int mode = -1; mode <= 4; ++mode) {
        EXPECT_EQ(made(each, [&](auto&, auto& d) { d.addressMode[i] = static_cast<cudaTextureAddressMode>(mode); }),
                  mode < 0 || mode > 3 ? cudaErrorInvalidValue : cudaSuccess);
      }
    }
    const bool narrow = each.x < 32;
    const bool is_float = each.f == cudaChannelFormatKindFloat;
    const auto expect = [](bool good) { return good ? cudaSuccess : cudaErrorInvalidValue; };
    EXPECT_EQ(made(each, [](auto&, auto& d) { d.readMode = cudaReadModeNormalizedFloat; }), expect(narrow || is_float));
    EXPECT_EQ(made(each, [](auto&, auto& d) { d.filterMode = cudaFilterModeLinear; }), expect(is_float));
    EXPECT_EQ(made(each,
                   [](auto&, auto& d) {
                     d.filterMode = cudaFilterModeLinear;
                     d.readMode = cudaReadModeNormalizedFloat;
                   }),
              expect(narrow || is_float));
    EXPECT_EQ(made(each, [](auto&, auto& d) { d.sRGB = 1; }), cudaErrorInvalidValue);
    EXPECT_EQ(made(each,
                   [](auto&, auto& d) {
                     d.sRGB = 1;
                     d.readMode = cudaReadModeNormalizedFloat;
                   }),
              expect(each.x == 8));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(made(each, [&](auto&, auto& d) { d.borderColor[i] = 0.5F; }),
                is_float ? cudaSuccess : cudaErrorNotSupported);
  }
}

}  // namespace
