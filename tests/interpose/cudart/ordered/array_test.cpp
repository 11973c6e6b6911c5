#include <numeric>

#include "common.h"

namespace {

const cudaChannelFormatDesc floats{32, 0, 0, 0, cudaChannelFormatKindFloat};
const cudaChannelFormatDesc quads{8, 8, 8, 8, cudaChannelFormatKindUnsigned};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> result(count);
  std::iota(result.begin(), result.end(), 1.0F);
  return result;
}

TEST(Array, KeepsRowsOfElements) {
  constexpr std::size_t width = 37;
  constexpr std::size_t height = 11;
  const auto in = ramp(width * height);
  std::vector<float> out(in.size(), -1);
  cudaArray_t array = nullptr;
  ASSERT_CUDA(cudaMallocArray(&array, &floats, width, height));
  cudaChannelFormatDesc format{};
  cudaExtent extent{};
  unsigned flags = 1;
  ASSERT_CUDA(cudaArrayGetInfo(&format, &extent, &flags, array));
  EXPECT_EQ(format.x, 32);
  EXPECT_EQ(extent.width, width);
  EXPECT_EQ(extent.height, height);
  EXPECT_EQ(flags, 0U);
  constexpr std::size_t row = width * sizeof(float);
  ASSERT_CUDA(cudaMemcpy2DToArray(array, 0, 0, in.data(), row, row, height, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemcpy2DFromArray(out.data(), row, array, 0, 0, row, height, cudaMemcpyDeviceToHost));
  EXPECT_EQ(out, in);

  // A part: 5 elements of each of 2 rows, from (3, 4) on.
  std::vector<float> part(10, -1);
  ASSERT_CUDA(cudaMemcpy2DFromArray(part.data(), 20, array, 12, 4, 20, 2, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(part[i], in[(4 + i / 5) * width + 3 + i % 5]);

  // One range of bytes, from the middle of a row to the middle of another.
  std::vector<float> flat(100, -1);
  ASSERT_CUDA(cudaMemcpyFromArray(flat.data(), array, 20, 2, 400, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(flat.begin(), flat.end(), in.begin() + 2 * width + 5));
  ASSERT_CUDA(cudaMemcpyToArray(array, 20, 2, part.data(), 40, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaMemcpyFromArray(flat.data(), array, 20, 2, 40, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), flat.begin()));

  EXPECT_FAILS(cudaMemcpy2DToArray(array, 4, 0, in.data(), row, row, height, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy2DToArray(array, 2, 0, in.data(), row, 4, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeArray(array));
  EXPECT_FAILS(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaFreeArray(nullptr));
}

TEST(Array, OfThreeDimensionsIsCopiedInBoxes) {
  constexpr std::size_t side = 9;
  const auto in = ramp(side * side * side);
  std::vector<float> out(in.size(), -1);
  cudaArray_t a = nullptr;
  cudaArray_t b = nullptr;
  ASSERT_CUDA(cudaMalloc3DArray(&a, &floats, {side, side, side}));
  ASSERT_CUDA(cudaMalloc3DArray(&b, &floats, {side, side, side}));
  const own_stream stream;
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<float*>(in.data()), side * sizeof(float), side, side};
  copy.dstArray = a;
  copy.extent = {side, side, side};
  copy.kind = cudaMemcpyHostToDevice;
  ASSERT_CUDA(cudaMemcpy3DAsync(&copy, stream));
  copy = {};
  copy.srcArray = a;
  copy.dstArray = b;
  copy.extent = {side - 2, side - 1, side - 3};
  copy.srcPos = {2, 1, 3};
  copy.kind = cudaMemcpyDeviceToDevice;
  ASSERT_CUDA(cudaMemcpy3DAsync(&copy, stream));
  copy = {};
  copy.srcArray = b;
  copy.dstPtr = {out.data(), side * sizeof(float), side, side};
  copy.extent = {side - 2, side - 1, side - 3};
  copy.kind = cudaMemcpyDeviceToHost;
  ASSERT_CUDA(cudaMemcpy3DAsync(&copy, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  for (std::size_t z = 0; z < side - 3; ++z) {
    for (std::size_t y = 0; y < side - 1; ++y) {
      for (std::size_t x = 0; x < side - 2; ++x) {
        ASSERT_EQ(out[(z * side + y) * side + x], in[((z + 3) * side + y + 1) * side + x + 2]);
      }
    }
  }
  EXPECT_CUDA(cudaFreeArray(a));
  EXPECT_CUDA(cudaFreeArray(b));
}

TEST(Array, RefusesFormatsThatItCannotHave) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc three{8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  const cudaChannelFormatDesc uneven{8, 16, 0, 0, cudaChannelFormatKindUnsigned};
  const cudaChannelFormatDesc nothing{};
  for (const auto* const each : {&three, &uneven, &nothing}) {
    EXPECT_FAILS(cudaMallocArray(&array, each, 4, 4), cudaErrorInvalidChannelDescriptor);
  }
  EXPECT_FAILS(cudaMallocArray(&array, &quads, 0, 4), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocArray(nullptr, &quads, 4, 4), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocArray(&array, &quads, 4, 4, cudaArrayCubemap), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocArray(&array, &quads, 4, 4, cudaArraySparse), cudaErrorNotSupported);
}

}  // namespace
