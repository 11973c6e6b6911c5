// Copies of rows and planes between the stand-in's devices and pageable memory.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// The shape of a copy: rows on a device and on the host, with gaps that must not be written.
struct shape {
  std::size_t width;
  std::size_t count;
  std::size_t device_gap;
  std::size_t host_gap;

  [[nodiscard]] std::size_t device_pitch() const { return width + device_gap; }
  [[nodiscard]] std::size_t host_pitch() const { return width + host_gap; }
};

class Rows : public testing::TestWithParam<shape> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    RecordProperty("seed", std::to_string(seed));
    const shape& s = GetParam();
    ASSERT_EQ(cuMemAlloc(&device, s.device_pitch() * s.count + offset), CUDA_SUCCESS);
    // hpe allocates its staging buffers after the first 64 MiB of copies.
    std::vector<std::uint8_t> much(64 * MiB);
    CUdeviceptr other = 0;
    ASSERT_EQ(cuMemAlloc(&other, much.size()), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyHtoD(other, much.data(), much.size()), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(other), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS); }

  [[nodiscard]] std::vector<std::uint8_t> fresh(std::size_t bytes) {
    std::vector<std::uint8_t> result(bytes);
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      const std::uint64_t word = numbers();
      std::memcpy(result.data() + i, &word, 8);
    }
    return result;
  }
  [[nodiscard]] CUDA_MEMCPY2D up(const std::uint8_t* from) const {
    const shape& s = GetParam();
    CUDA_MEMCPY2D c{};
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = from;
    c.srcPitch = s.host_pitch();
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = device;
    c.dstPitch = s.device_pitch();
    c.dstXInBytes = offset;
    c.WidthInBytes = s.width;
    c.Height = s.count;
    return c;
  }
  [[nodiscard]] CUDA_MEMCPY2D down(std::uint8_t* to) const {
    CUDA_MEMCPY2D c = up(nullptr);
    std::swap(c.srcPitch, c.dstPitch);
    std::swap(c.srcXInBytes, c.dstXInBytes);
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = device;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = to;
    return c;
  }
  // Expects the right rows, and unchanged gaps.
  void expect_rows(const std::uint8_t* have, std::size_t pitch, const std::vector<std::uint8_t>& source,
                   std::size_t source_pitch, std::uint8_t gap) const {
    const shape& s = GetParam();
    std::size_t wrong = 0;
    for (std::size_t y = 0; y < s.count; ++y) {
      wrong += std::memcmp(have + y * pitch, source.data() + y * source_pitch, s.width) != 0 ? 1 : 0;
      if (y + 1 < s.count)
        for (std::size_t x = s.width; x < pitch; ++x) wrong += have[y * pitch + x] != gap ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0U) << "wrong rows or wrong bytes in gaps; seed " << seed;
  }

  static constexpr std::size_t offset = 24;
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 numbers{seed};
  CUdeviceptr device = 0;
};

TEST_P(Rows, UpAndDown) {
  const shape& s = GetParam();
  auto source = fresh(s.host_pitch() * s.count);
  const auto kept = source;
  ASSERT_EQ(cuMemsetD8(device, 0xaa, s.device_pitch() * s.count + offset), CUDA_SUCCESS);
  const unsigned direct = stand_in::calls("cuMemcpy2D_v2");
  const CUDA_MEMCPY2D to_device = up(source.data());
  ASSERT_EQ(cuMemcpy2D(&to_device), CUDA_SUCCESS);
  std::memset(source.data(), 0xee, source.size());
  expect_rows(reinterpret_cast<std::uint8_t*>(stand_in::memory(device)) + offset, s.device_pitch(), kept,
              s.host_pitch(), 0xaa);
  std::vector<std::uint8_t> back(source.size(), 0xbb);
  const CUDA_MEMCPY2D to_host = down(back.data());
  ASSERT_EQ(cuMemcpy2D(&to_host), CUDA_SUCCESS);
  expect_rows(back.data(), s.host_pitch(), kept, s.host_pitch(), 0xbb);
  // The driver executes the copy if the rows are narrow, or wider than a staging buffer.
  const bool staged = s.width * s.count >= MiB && s.width >= 512 && s.width <= 8 * MiB;
  EXPECT_EQ(stand_in::calls("cuMemcpy2D_v2"), direct + (staged ? 0 : 2));
}

TEST_P(Rows, InTheOrderOfAStream) {
  const shape& s = GetParam();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  auto source = fresh(s.host_pitch() * s.count);
  const auto kept = source;
  ASSERT_EQ(cuMemsetD8Async(device, 0xaa, s.device_pitch() * s.count + offset, stream), CUDA_SUCCESS);
  const CUDA_MEMCPY2D to_device = up(source.data());
  ASSERT_EQ(cuMemcpy2DAsync(&to_device, stream), CUDA_SUCCESS);
  std::memset(source.data(), 0xee, source.size());  // allowed after the call returns, because the source is pageable
  std::vector<std::uint8_t> back(source.size(), 0xbb);
  const CUDA_MEMCPY2D to_host = down(back.data());
  ASSERT_EQ(cuMemcpy2DAsync(&to_host, stream), CUDA_SUCCESS);
  expect_rows(back.data(), s.host_pitch(), kept, s.host_pitch(), 0xbb);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_P(Rows, AsPlanes) {
  const shape& s = GetParam();
  if (s.count % 3 != 0) GTEST_SKIP() << "three planes of equal height are wanted";
  const auto source = fresh(s.host_pitch() * s.count);
  ASSERT_EQ(cuMemsetD8(device, 0xaa, s.device_pitch() * s.count + offset), CUDA_SUCCESS);
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = source.data();
  c.srcPitch = s.host_pitch();
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = device + offset;
  c.dstPitch = s.device_pitch();
  c.WidthInBytes = s.width;
  c.Height = c.srcHeight = c.dstHeight = s.count / 3;
  c.Depth = 3;
  ASSERT_EQ(cuMemcpy3D(&c), CUDA_SUCCESS);
  expect_rows(reinterpret_cast<std::uint8_t*>(stand_in::memory(device)) + offset, s.device_pitch(), source,
              s.host_pitch(), 0xaa);
  // The driver executes the copy if the planes are parts of higher planes, unless each plane has no gaps and so counts
  // as one row.
  const unsigned direct = stand_in::calls("cuMemcpy3D_v2");
  const std::size_t plane = s.width * (s.count / 3 - 1);
  const bool staged = s.device_gap == 0 && s.host_gap == 0 && plane <= 8 * MiB;
  ASSERT_EQ(cuMemsetD8(device, 0xaa, s.device_pitch() * s.count + offset), CUDA_SUCCESS);
  c.Height -= 1;
  ASSERT_EQ(cuMemcpy3D(&c), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuMemcpy3D_v2"), direct + (staged ? 0 : 1));
  if (!staged) return;
  const auto* const have = reinterpret_cast<const std::uint8_t*>(stand_in::memory(device)) + offset;
  for (std::size_t z = 0; z < 3; ++z) {
    EXPECT_EQ(std::memcmp(have + z * (plane + s.width), source.data() + z * (plane + s.width), plane), 0);
    EXPECT_EQ(have[z * (plane + s.width) + plane], 0xaa) << "the plane's last row is not copied";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rows,
                         testing::Values(shape{4096, 3000, 0, 0}, shape{4096, 3000, 512, 0}, shape{5003, 2001, 117, 13},
                                         shape{512, 9000, 8, 24}, shape{511, 9000, 1, 1}, shape{3 * MiB + 1, 9, 63, 64},
                                         shape{1000, 12, 24, 24}, shape{9 * MiB, 3, 0, 8}));

}  // namespace
