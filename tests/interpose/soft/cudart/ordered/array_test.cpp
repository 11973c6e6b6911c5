#include <algorithm>
#include <cstring>
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

  // Copies a part: 5 elements of each of 2 rows, starting at (3, 4).
  std::vector<float> part(10, -1);
  ASSERT_CUDA(cudaMemcpy2DFromArray(part.data(), 20, array, 12, 4, 20, 2, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(part[i], in[(4 + i / 5) * width + 3 + i % 5]);

  // Copies one contiguous range, which begins in the middle of one row and ends in the middle of a later row.
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

TEST(Array, RandomRectanglesAndRangesAreThoseOfAModel) {
  random_bytes random;
  SCOPED_TRACE(random.seed());
  const own_stream stream;
  const cudaChannelFormatDesc formats[] = {quads,
                                           floats,
                                           {16, 16, 0, 0, cudaChannelFormatKindUnsigned},
                                           {32, 32, 32, 32, cudaChannelFormatKindFloat},
                                           {8, 0, 0, 0, cudaChannelFormatKindSigned}};
  for (const auto& format : formats) {
    const std::size_t element = static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
    const std::size_t across = 1 + random.below(140);
    const std::size_t down = 1 + random.below(9);
    const std::size_t row = across * element;
    cudaArray_t arrays[2]{};
    std::vector<char> model[2];
    for (int i = 0; i < 2; ++i) {
      ASSERT_CUDA(
          cudaMallocArray(&arrays[i], &format, across, down, i == 0 ? cudaArrayDefault : cudaArraySurfaceLoadStore));
      model[i] = random.make(row * down);
      ASSERT_CUDA(cudaMemcpy2DToArray(arrays[i], 0, 0, model[i].data(), row, row, down, cudaMemcpyDefault));
      cudaChannelFormatDesc told{};
      EXPECT_CUDA(cudaGetChannelDesc(&told, arrays[i]));
      EXPECT_EQ(std::memcmp(&told, &format, sizeof told), 0);
    }
    for (int step = 0; step < 60; ++step) {
      const std::size_t width = 1 + random.below(across);
      const std::size_t height = 1 + random.below(down);
      const std::size_t x = random.below(across - width + 1);
      const std::size_t y = random.below(down - height + 1);
      const std::size_t to_x = random.below(across - width + 1);
      const std::size_t to_y = random.below(down - height + 1);
      const std::size_t pitch = width * element + random.below(5);
      const int which = static_cast<int>(random.below(2));
      const auto rows = [&](const auto& each) {
        for (std::size_t r = 0; r < height; ++r) each(r);
      };
      char* const place = model[which].data() + y * row + x * element;
      const auto kind = random.below(9);
      if (kind < 2) {
        const auto in = random.make(pitch * height);
        const auto call = [&] {
          return kind == 0 ? cudaMemcpy2DToArray(arrays[which], x * element, y, in.data(), pitch, width * element,
                                                 height, cudaMemcpyDefault)
                           : cudaMemcpy2DToArrayAsync(arrays[which], x * element, y, in.data(), pitch, width * element,
                                                      height, cudaMemcpyHostToDevice, stream);
        };
        ASSERT_CUDA(call());
        ASSERT_CUDA(cudaStreamSynchronize(stream));
        rows([&](std::size_t r) { std::copy_n(in.data() + r * pitch, width * element, place + r * row); });
      } else if (kind < 4) {
        std::vector<char> out(pitch * height, 1);
        auto expected = out;
        rows([&](std::size_t r) { std::copy_n(place + r * row, width * element, expected.data() + r * pitch); });
        if (kind == 2) {
          ASSERT_CUDA(cudaMemcpy2DFromArray(out.data(), pitch, arrays[which], x * element, y, width * element, height,
                                            cudaMemcpyDefault));
        } else {
          ASSERT_CUDA(cudaMemcpy2DFromArrayAsync(out.data(), pitch, arrays[which], x * element, y, width * element,
                                                 height, cudaMemcpyDeviceToHost, stream));
          ASSERT_CUDA(cudaStreamSynchronize(stream));
        }
        ASSERT_EQ(out, expected);
      } else if (kind == 4) {
        ASSERT_CUDA(cudaMemcpy2DArrayToArray(arrays[1 - which], to_x * element, to_y, arrays[which], x * element, y,
                                             width * element, height, cudaMemcpyDeviceToDevice));
        char* const to = model[1 - which].data() + to_y * row + to_x * element;
        rows([&](std::size_t r) { std::copy_n(place + r * row, width * element, to + r * row); });
      } else {
        // Copies a range of bytes that begins at an element, continues in the next rows, and ends at or before the
        // array's end.
        const std::size_t begin = y * row + x * element;
        const std::size_t all = (model[which].size() - begin) / element;
        const std::size_t bytes = (random.below(3) == 0 ? all : 1 + random.below(all)) * element;
        if (kind < 7) {
          const auto in = random.make(bytes);
          ASSERT_CUDA(kind == 5 ? cudaMemcpyToArray(arrays[which], x * element, y, in.data(), bytes, cudaMemcpyDefault)
                                : cudaMemcpyToArrayAsync(arrays[which], x * element, y, in.data(), bytes,
                                                         cudaMemcpyDefault, stream));
          ASSERT_CUDA(cudaStreamSynchronize(stream));
          std::copy(in.begin(), in.end(), model[which].begin() + static_cast<std::ptrdiff_t>(begin));
        } else {
          std::vector<char> out(bytes);
          ASSERT_CUDA(kind == 7
                          ? cudaMemcpyFromArray(out.data(), arrays[which], x * element, y, bytes, cudaMemcpyDefault)
                          : cudaMemcpyFromArrayAsync(out.data(), arrays[which], x * element, y, bytes,
                                                     cudaMemcpyDefault, stream));
          ASSERT_CUDA(cudaStreamSynchronize(stream));
          ASSERT_TRUE(std::equal(out.begin(), out.end(), model[which].begin() + static_cast<std::ptrdiff_t>(begin)));
        }
      }
      for (int i = 0; i < 2; ++i) {
        std::vector<char> out(model[i].size());
        ASSERT_CUDA(cudaMemcpyFromArray(out.data(), arrays[i], 0, 0, out.size(), cudaMemcpyDefault));
        ASSERT_EQ(out, model[i]) << "kind " << kind;
      }
    }
    // Copies that exceed a border by one element are refused.
    std::vector<char> in(row * (down + 1));
    const auto to = [&](std::size_t x, std::size_t y, std::size_t width, std::size_t height) {
      return cudaMemcpy2DToArray(arrays[0], x * element, y, in.data(), row, width * element, height, cudaMemcpyDefault);
    };
    EXPECT_CUDA(to(across - 1, down - 1, 1, 1));
    EXPECT_FAILS(to(across, 0, 1, 1), cudaErrorInvalidValue);
    EXPECT_FAILS(to(0, down, 1, 1), cudaErrorInvalidValue);
    EXPECT_FAILS(to(0, 0, 1, down + 1), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemcpyToArray(arrays[0], 0, 0, in.data(), row * down + element, cudaMemcpyDefault),
                 cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemcpyToArray(arrays[0], row, 0, in.data(), element, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemcpy2DToArray(arrays[0], 0, 0, nullptr, row, row, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemcpy2DToArray(nullptr, 0, 0, in.data(), row, row, 1, cudaMemcpyDefault),
                 cudaErrorInvalidResourceHandle);
    for (const auto each : arrays) EXPECT_CUDA(cudaFreeArray(each));
  }
}

TEST(Array, LevelsOfAMipmapAreHalves) {
  struct test_case {
    cudaExtent extent;
    unsigned levels;
    unsigned flags;
    std::vector<std::vector<std::size_t>> expected;
  };
  const std::vector<test_case> cases{{{5, 3, 0}, 9, 0, {{5, 3, 0}, {2, 1, 0}, {1, 1, 0}}},
                                     {{5, 3, 0}, 2, 0, {{5, 3, 0}, {2, 1, 0}}},
                                     {{8, 0, 0}, 4, 0, {{8, 0, 0}, {4, 0, 0}, {2, 0, 0}, {1, 0, 0}}},
                                     {{2, 2, 9}, 9, 0, {{2, 2, 9}, {1, 1, 4}, {1, 1, 2}, {1, 1, 1}}},
                                     {{4, 4, 9}, 9, cudaArrayLayered, {{4, 4, 9}, {2, 2, 9}, {1, 1, 9}}},
                                     {{1, 1, 0}, 1, 0, {{1, 1, 0}}}};
  for (const auto& each : cases) {
    cudaMipmappedArray_t made = nullptr;
    ASSERT_CUDA(cudaMallocMipmappedArray(&made, &floats, each.extent, each.levels, each.flags));
    cudaArray_t level = nullptr;
    for (std::size_t n = 0; n < each.expected.size(); ++n) {
      ASSERT_CUDA(cudaGetMipmappedArrayLevel(&level, made, static_cast<unsigned>(n)));
      cudaExtent e{};
      unsigned flags = 99;
      ASSERT_CUDA(cudaArrayGetInfo(nullptr, &e, &flags, level));
      EXPECT_EQ((std::vector<std::size_t>{e.width, e.height, e.depth}), each.expected[n]) << n;
      EXPECT_EQ(flags, each.flags);
    }
    EXPECT_FAILS(cudaGetMipmappedArrayLevel(&level, made, static_cast<unsigned>(each.expected.size())),
                 cudaErrorInvalidValue);
    EXPECT_FAILS(cudaGetMipmappedArrayLevel(nullptr, made, 0), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaFreeMipmappedArray(made));
    EXPECT_FAILS(cudaFreeMipmappedArray(made), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaArrayGetInfo(nullptr, nullptr, nullptr, level), cudaErrorInvalidResourceHandle);
  }
  cudaMipmappedArray_t made = nullptr;
  EXPECT_FAILS(cudaMallocMipmappedArray(&made, &floats, {4, 4, 0}, 0, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocMipmappedArray(nullptr, &floats, {4, 4, 0}, 1, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMallocMipmappedArray(&made, nullptr, {4, 4, 0}, 1, 0), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeMipmappedArray(nullptr));
}

TEST(Array, HasTheDimensionsThatItsFlagsDemand) {
  cudaArray_t array = nullptr;
  const auto make = [&](cudaExtent extent, unsigned flags) {
    const cudaError_t made = cudaMalloc3DArray(&array, &floats, extent, flags);
    if (made == cudaSuccess) cudaFreeArray(array);
    cudaGetLastError();
    return made;
  };
  EXPECT_EQ(make({4, 0, 2}, 0), cudaErrorInvalidValue);
  EXPECT_EQ(make({4, 1, 2}, 0), cudaSuccess);
  EXPECT_EQ(make({4, 0, 2}, cudaArrayLayered), cudaSuccess);
  EXPECT_EQ(make({4, 4, 0}, cudaArrayLayered), cudaErrorInvalidValue);
  EXPECT_EQ(make({4, 4, 6}, cudaArrayCubemap), cudaSuccess);
  EXPECT_EQ(make({4, 4, 12}, cudaArrayCubemap), cudaErrorInvalidValue);
  EXPECT_EQ(make({4, 5, 6}, cudaArrayCubemap), cudaErrorInvalidValue);
  EXPECT_EQ(make({4, 4, 12}, cudaArrayCubemap | cudaArrayLayered), cudaSuccess);
  EXPECT_EQ(make({4, 4, 7}, cudaArrayCubemap | cudaArrayLayered), cudaErrorInvalidValue);
  EXPECT_EQ(make({std::size_t{1} << 62, 1, 0}, 0), cudaErrorInvalidValue);
  for (const int bits : {1, 4, 24, 64}) {
    const cudaChannelFormatDesc wrong{bits, 0, 0, 0, cudaChannelFormatKindUnsigned};
    EXPECT_FAILS(cudaMallocArray(&array, &wrong, 4, 4), cudaErrorInvalidChannelDescriptor);
  }
  const cudaChannelFormatDesc small{8, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_FAILS(cudaMallocArray(&array, &small, 4, 4), cudaErrorInvalidChannelDescriptor);
  const cudaChannelFormatDesc none{8, 0, 0, 0, cudaChannelFormatKindNone};
  EXPECT_FAILS(cudaMallocArray(&array, &none, 4, 4), cudaErrorInvalidChannelDescriptor);
  EXPECT_FAILS(cudaMallocArray(&array, nullptr, 4, 4), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMalloc3DArray(nullptr, &floats, {4, 4, 0}, 0), cudaErrorInvalidValue);
  const cudaChannelFormatDesc made = cudaCreateChannelDesc(1, 2, 3, 4, cudaChannelFormatKindFloat);
  EXPECT_EQ(std::vector<int>({made.x, made.y, made.z, made.w, made.f}),
            std::vector<int>({1, 2, 3, 4, cudaChannelFormatKindFloat}));
}

}  // namespace
