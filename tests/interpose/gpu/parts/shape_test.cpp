// Compares decoded descriptions of copies with a direct calculation of the address of each byte.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <vector>

#include "interpose/shape/described_copy.h"

namespace {

using namespace hpe::cuda_shape;
using hpe::box_part;
using hpe::too_many_bytes;

template <class Description>
constexpr bool has_planes = requires(const Description& c) {
  c.Depth;
};

/// The members of one side of a description; they are the same for all structures.
struct side {
  CUdeviceptr base;
  std::size_t x, y, z, pitch, height;
  bool is_array;
};

template <class Description>
side source_of(const Description& c) {
  side s{c.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(c.srcHost) : c.srcDevice,
         c.srcXInBytes,
         c.srcY,
         0,
         c.srcPitch,
         0,
         c.srcMemoryType == CU_MEMORYTYPE_ARRAY};
  if constexpr (has_planes<Description>) s.z = c.srcZ, s.height = c.srcHeight;
  return s;
}
template <class Description>
side target_of(const Description& c) {
  side s{c.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(c.dstHost) : c.dstDevice,
         c.dstXInBytes,
         c.dstY,
         0,
         c.dstPitch,
         0,
         c.dstMemoryType == CU_MEMORYTYPE_ARRAY};
  if constexpr (has_planes<Description>) s.z = c.dstZ, s.height = c.dstHeight;
  return s;
}

/// Returns the bytes of a side of a description according to CUDA's manual: addresses in memory, or positions in an
/// array.
template <class Description>
std::vector<std::array<std::size_t, 3>> bytes_of(const Description& c, const side& s) {
  std::size_t planes = 1;
  if constexpr (has_planes<Description>) planes = c.Depth;
  const std::size_t pitch = s.pitch != 0 ? s.pitch : s.x + c.WidthInBytes;
  const std::size_t height = s.height != 0 ? s.height : s.y + c.Height;
  std::vector<std::array<std::size_t, 3>> result;
  for (std::size_t z = 0; z < planes; ++z)
    for (std::size_t y = 0; y < c.Height; ++y)
      for (std::size_t x = 0; x < c.WidthInBytes; ++x)
        if (s.is_array)
          result.push_back({s.x + x, s.y + y, s.z + z});
        else
          result.push_back({s.base + ((s.z + z) * height + s.y + y) * pitch + s.x + x, 0, 0});
  return result;
}

class descriptions {
 public:
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }

  template <class Description>
  Description make() {
    Description c{};
    c.WidthInBytes = 1 + below(5);
    c.Height = 1 + below(4);
    c.srcXInBytes = below(4);
    c.srcY = below(3);
    c.dstXInBytes = below(4);
    c.dstY = below(3);
    c.srcMemoryType = type();
    c.dstMemoryType = type();
    c.srcHost = reinterpret_cast<const void*>(0x10000);  // NOLINT(performance-no-int-to-ptr): never followed
    c.srcDevice = 0x20000;
    c.srcArray = reinterpret_cast<CUarray>(0x30000);  // NOLINT(performance-no-int-to-ptr): never followed
    c.dstHost = reinterpret_cast<void*>(0x40000);     // NOLINT(performance-no-int-to-ptr): never followed
    c.dstDevice = 0x50000;
    c.dstArray = reinterpret_cast<CUarray>(0x60000);  // NOLINT(performance-no-int-to-ptr): never followed
    if (below(3) != 0) c.srcPitch = c.srcXInBytes + c.WidthInBytes + below(4);
    if (below(3) != 0) c.dstPitch = c.dstXInBytes + c.WidthInBytes + below(4);
    if constexpr (has_planes<Description>) {
      c.Depth = 1 + below(3);
      c.srcZ = below(3);
      c.dstZ = below(3);
      if (below(3) != 0) c.srcHeight = c.srcY + c.Height + below(3);
      if (below(3) != 0) c.dstHeight = c.dstY + c.Height + below(3);
    }
    return c;
  }

 private:
  CUmemorytype type() {
    constexpr CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED,
                                      CU_MEMORYTYPE_ARRAY};
    return types[below(std::size(types))];
  }

  std::mt19937_64 random_{7};
};

template <class Description>
class Descriptions : public ::testing::Test {};
using kinds = ::testing::Types<CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER>;
TYPED_TEST_SUITE(Descriptions, kinds);

/// Returns the bytes of a decoded side.
std::vector<std::array<std::size_t, 3>> bytes_of(const hpe::box_extent& e, const copy_side& s) {
  std::vector<std::array<std::size_t, 3>> result;
  for (std::size_t z = 0; z < e.planes; ++z)
    for (std::size_t y = 0; y < e.rows; ++y)
      for (std::size_t x = 0; x < e.width; ++x)
        if (s.is_array)
          result.push_back({s.x + x, s.y + y, s.z + z});
        else
          result.push_back({s.first() + z * s.strides().plane + y * s.strides().row + x, 0, 0});
  return result;
}

TYPED_TEST(Descriptions, AreDecodedToTheBytesThatTheyName) {
  descriptions all;
  for (int n = 0; n < 3000; ++n) {
    const auto c = all.make<TypeParam>();
    const auto d = decoded(c);
    ASSERT_TRUE(d);
    ASSERT_EQ(bytes_of(d->extent, d->from), bytes_of(c, source_of(c)));
    ASSERT_EQ(bytes_of(d->extent, d->to), bytes_of(c, target_of(c)));
    ASSERT_EQ(d->is_in_memory(), !source_of(c).is_array && !target_of(c).is_array);
    ASSERT_EQ(d->from.array, source_of(c).is_array ? c.srcArray : nullptr);
    ASSERT_EQ(d->to.first() == 0, d->to.is_array);
  }
}

TYPED_TEST(Descriptions, PartsNameTheBytesOfTheWhole) {
  descriptions all;
  for (int n = 0; n < 3000; ++n) {
    const auto c = all.make<TypeParam>();
    const auto whole = decoded(c);
    std::multiset<std::array<std::size_t, 3>> read, written;
    const std::array sides{whole->from.strides(), whole->to.strides()};
    hpe::box_parts parts(whole->extent, sides, 1 + all.below(30));
    while (const auto part = parts.next()) {
      const auto described = part_of(c, *whole, *part);
      const auto again = decoded(described);
      ASSERT_TRUE(again);
      // The base must be the address of the part's first byte, because the driver refuses a base that is not mapped.
      ASSERT_TRUE(again->from.is_array || again->from.first() == again->from.base);
      ASSERT_TRUE(again->to.is_array || again->to.first() == again->to.base);
      for (const auto& b : bytes_of(described, source_of(described))) read.insert(b);
      for (const auto& b : bytes_of(described, target_of(described))) written.insert(b);
    }
    const auto all_read = bytes_of(c, source_of(c)), all_written = bytes_of(c, target_of(c));
    ASSERT_EQ(read, (std::multiset<std::array<std::size_t, 3>>(all_read.begin(), all_read.end())));
    ASSERT_EQ(written, (std::multiset<std::array<std::size_t, 3>>(all_written.begin(), all_written.end())));
  }
}

TYPED_TEST(Descriptions, ThatExceedTheAddressSpaceAreNotDecoded) {
  descriptions all;
  const auto refused = [&](auto change) {
    TypeParam c = all.make<TypeParam>();
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.Height = 2;
    c.srcPitch = 64;
    c.dstPitch = 64;
    EXPECT_TRUE(decoded(c));
    change(c);
    return !decoded(c);
  };
  EXPECT_TRUE(refused([](auto& c) { c.WidthInBytes = too_many_bytes; }));
  EXPECT_TRUE(refused([](auto& c) { c.Height = too_many_bytes / 32; }));
  EXPECT_TRUE(refused([](auto& c) { c.srcPitch = too_many_bytes; }));
  EXPECT_TRUE(refused([](auto& c) { c.dstPitch = too_many_bytes - 64; }));
  EXPECT_TRUE(refused([](auto& c) { c.srcXInBytes = too_many_bytes - 1; }));
  EXPECT_TRUE(refused([](auto& c) { c.dstY = too_many_bytes / 64 + 1; })) << "a product that wraps to a small offset";
  EXPECT_TRUE(refused([](auto& c) { c.srcDevice = too_many_bytes - 8; }));
  EXPECT_TRUE(refused([](auto& c) { c.dstMemoryType = CUmemorytype{}; }));
  EXPECT_TRUE(refused([](auto& c) { c.srcMemoryType = static_cast<CUmemorytype>(17); }));
  if constexpr (has_planes<TypeParam>) {
    EXPECT_TRUE(refused([](auto& c) { c.Depth = too_many_bytes / 2; }));
    EXPECT_TRUE(refused([](auto& c) { c.srcZ = too_many_bytes / 64; }));
    EXPECT_TRUE(refused([](auto& c) {
      c.Depth = 2;
      c.dstHeight = too_many_bytes / 16;
    }));
    EXPECT_FALSE(refused([](auto& c) {
      c.Depth = 1;
      c.srcZ = c.dstZ = 0;
      c.srcHeight = c.dstHeight = too_many_bytes;
    })) << "the distance of planes does not matter if there is only one plane";
  }
}

}  // namespace
