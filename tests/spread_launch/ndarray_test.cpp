// hpe::ndarray on the host.

#include "hpe/ndarray.hpp"

#include <gtest/gtest.h>

namespace {

TEST(NdArray, HasRowsOrColumns) {
  const hpe::ndarray<int, 3> rows({2, 3, 4});
  const hpe::ndarray<int, 3, hpe::storage::column_major> columns({2, 3, 4});
  EXPECT_EQ(rows.size(), 24U);
  EXPECT_EQ(&rows(1, 2, 3), rows.data() + 12 + 2 * 4 + 3);
  EXPECT_EQ(&columns(1, 2, 3), columns.data() + 1 + 2 * 2 + 3 * 6);
  EXPECT_EQ((std::array{rows.stride(0), rows.stride(1), rows.stride(2)}), (std::array<std::size_t, 3>{12, 4, 1}));
  EXPECT_EQ((std::array{columns.stride(0), columns.stride(1), columns.stride(2)}),
            (std::array<std::size_t, 3>{1, 2, 6}));
  EXPECT_EQ(rows.extent(1), 3U);
}

TEST(NdArray, IsZeroUntilFilled) {
  hpe::ndarray<float, 2> a({3, 5});
  for (const float x : a) EXPECT_EQ(x, 0);
  a.fill(1.5F);
  for (const float x : a) EXPECT_EQ(x, 1.5F);
  a.fill(0);
  for (const float x : a) EXPECT_EQ(x, 0);
  hpe::ndarray<float, 2> b = std::move(a);
  EXPECT_EQ(b.size(), 15U);
  EXPECT_EQ((hpe::ndarray<float, 2>({0, 5}).size()), 0U);
  EXPECT_THROW((hpe::ndarray<float, 2>({SIZE_MAX, 2})), hpe::error);
}

TEST(NdArray, LiesInPartsIfItIsLarge) {
  const std::size_t devices = static_cast<std::size_t>(hpe::device_count());
  const hpe::ndarray<char, 1> large({devices * hpe::granularity()}), small({1000});
  EXPECT_EQ(hpe::pointer_info(small.data()).device, 0);
  for (std::size_t d = 0; d < devices; ++d)
    EXPECT_EQ(hpe::pointer_info(large.data() + d * hpe::granularity()).device, static_cast<int>(d));
}

}  // namespace
