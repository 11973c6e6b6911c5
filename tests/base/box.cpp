// Compares boxes with a plain enumeration of their bytes, and sizes near the limit of std::size_t with wider
// arithmetic.
#include "runtime/base/box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace {

using hpe::box;
using hpe::box_copy;
using hpe::box_extent;
using hpe::box_part;
using hpe::box_parts;
using hpe::box_strides;
using hpe::too_many_bytes;

__extension__ using wide = unsigned __int128;

std::size_t at_most(wide number) { return number > too_many_bytes ? too_many_bytes : static_cast<std::size_t>(number); }

/// Returns the source and the target offset of each byte of a copy, in the order of the bytes.
std::vector<std::pair<std::size_t, std::size_t>> bytes_of(const box_copy& c) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  for (std::size_t z = 0; z < c.extent.planes; ++z)
    for (std::size_t y = 0; y < c.extent.rows; ++y)
      for (std::size_t x = 0; x < c.extent.width; ++x)
        result.emplace_back(z * c.to.plane + y * c.to.row + x, z * c.from.plane + y * c.from.row + x);
  return result;
}

class boxes {
 public:
  explicit boxes(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }
  /// Returns strides for a box, often without gaps between rows and between planes.
  box_strides strides(const box_extent& e) {
    const std::size_t row = e.width + (below(2) == 0 ? 0 : below(5));
    return {row, row * e.rows + (below(2) == 0 ? 0 : below(9))};
  }
  box_extent extent() { return {1 + below(6), 1 + below(4), 1 + below(4)}; }
  box_copy copy() {
    const box_extent e = extent();
    return {e, strides(e), strides(e)};
  }
  /// Returns a number near 0, near a power of two, or near the largest possible number.
  std::size_t any_number() {
    const std::size_t near = below(4);
    switch (below(4)) {
      case 0: return near;
      case 1: return too_many_bytes - near;
      default: return (std::size_t{1} << below(64)) - 1 + near;
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST(box, sums_and_products_end_at_the_greatest_number) {
  boxes make(1);
  for (int n = 0; n < 20000; ++n) {
    const std::size_t a = make.any_number(), b = make.any_number();
    ASSERT_EQ(hpe::saturated_sum(a, b), at_most(wide{a} + b)) << a << " + " << b;
    ASSERT_EQ(hpe::saturated_product(a, b), at_most(wide{a} * b)) << a << " * " << b;
  }
}

TEST(box, its_span_is_that_of_its_bytes) {
  boxes make(2);
  for (int n = 0; n < 2000; ++n) {
    const box_copy c = make.copy();
    std::size_t last = 0;
    for (const auto& [to, from] : bytes_of(c)) last = std::max(last, to);
    ASSERT_EQ(c.written().span(), last + 1);
    ASSERT_EQ(c.bytes(), bytes_of(c).size());
  }
}

TEST(box, a_span_that_is_no_number_is_the_greatest) {
  boxes make(3);
  unsigned overflown = 0;
  for (int n = 0; n < 20000; ++n) {
    const box b{{make.any_number(), make.any_number(), make.any_number()}, {make.any_number(), make.any_number()}};
    const auto& [width, rows, planes] = b.extent;
    if (b.extent.is_empty()) {
      ASSERT_EQ(b.span(), 0u);
      ASSERT_EQ(b.bytes(), 0u);
      continue;
    }
    // Each intermediate result stays below 2^128.
    const std::size_t span = at_most(wide{at_most(wide{planes - 1} * b.strides.plane)} +
                                     at_most(wide{at_most(wide{rows - 1} * b.strides.row)} + width));
    ASSERT_EQ(b.span(), span);
    ASSERT_EQ(b.bytes(), at_most(wide{at_most(wide{width} * rows)} * planes));
    overflown += span == too_many_bytes ? 1 : 0;
  }
  EXPECT_GT(overflown, 1000u);
  EXPECT_LT(overflown, 19000u);
}

TEST(box, an_empty_box_has_no_bytes_and_no_parts) {
  for (const box_extent& e : {box_extent{0, 3, 3}, box_extent{3, 0, 3}, box_extent{3, 3, 0}}) {
    EXPECT_EQ((box{e, {7, 70}}.span()), 0u);
    EXPECT_EQ(e.bytes(), 0u);
    EXPECT_FALSE((box_parts(e, std::array{box_strides{7, 70}}, 16).next()));
    EXPECT_EQ((box{e, {7, 70}}.joined().bytes()), 0u);
  }
}

TEST(box, an_empty_box_stays_as_it_is) {
  for (const box_extent& e : {box_extent{0, 3, 4}, box_extent{7, 0, 4}, box_extent{7, 3, 0}, box_extent{0, 1, 4}})
    for (const box_strides& s : {box_strides{7, 21}, box_strides{0, 0}, box_strides{9, 100}}) {
      const box b{e, s};
      EXPECT_EQ(b.joined(), b);
    }
}

TEST(box, joined_rows_are_the_same_bytes_in_fewer_rows) {
  boxes make(4);
  unsigned shorter = 0;
  for (int n = 0; n < 5000; ++n) {
    const box_copy c = make.copy();
    const box_copy j = c.joined();
    ASSERT_EQ(bytes_of(j), bytes_of(c));
    ASSERT_LE(j.extent.rows * j.extent.planes, c.extent.rows * c.extent.planes);
    shorter += j.extent.width > c.extent.width ? 1 : 0;
    // joined() has joined all rows that are adjacent on both sides.
    ASSERT_FALSE(j.extent.rows > 1 && j.to.row == j.extent.width && j.from.row == j.extent.width);
    ASSERT_FALSE(j.extent.planes > 1 && j.extent.rows == 1);
    ASSERT_EQ((box_copy{c.extent, c.to, c.to}.joined().written()), c.written().joined());
  }
  EXPECT_GT(shorter, 500u);
}

TEST(box, rows_are_not_joined_into_one_that_is_too_long) {
  const std::size_t width = std::size_t{1} << 40;
  const box b{{width, width, 1}, {width, 0}};
  EXPECT_EQ(b.joined(), b);
}

TEST(box, rows_are_visited_in_order) {
  boxes make(5);
  for (int n = 0; n < 500; ++n) {
    const box_copy c = make.copy();
    std::vector<std::pair<std::size_t, std::size_t>> visited;
    c.for_each_row([&](std::size_t to, std::size_t from) {
      for (std::size_t x = 0; x < c.extent.width; ++x) visited.emplace_back(to + x, from + x);
    });
    ASSERT_EQ(visited, bytes_of(c));
    std::vector<std::size_t> rows;
    c.written().for_each_row([&](std::size_t at) { rows.push_back(at); });
    ASSERT_EQ(rows.size(), c.extent.rows * c.extent.planes);
    for (std::size_t r = 0; r < rows.size(); ++r) ASSERT_EQ(rows[r], visited[r * c.extent.width].first);
  }
}

TEST(box, parts_cover_each_byte_once_and_none_is_too_long) {
  boxes make(6);
  for (int n = 0; n < 3000; ++n) {
    const box_copy c = make.copy();
    const std::size_t most = 1 + make.below(60);
    const std::array sides{c.to, c.from};
    const std::size_t counted = 1 + make.below(2);  // the number of sides (one or both) whose bytes are counted
    std::map<std::array<std::size_t, 3>, int> seen;
    box_parts parts(c.extent, std::span(sides).first(counted), most);
    while (const auto part = parts.next()) {
      const box_extent& e = part->extent;
      ASSERT_FALSE(e.is_empty());
      for (std::size_t s = 0; s < counted; ++s) ASSERT_LE((box{e, sides[s]}.span()), most);
      for (std::size_t z = 0; z < e.planes; ++z)
        for (std::size_t y = 0; y < e.rows; ++y)
          for (std::size_t x = 0; x < e.width; ++x) ++seen[{part->z + z, part->y + y, part->x + x}];
    }
    ASSERT_EQ(seen.size(), c.bytes());
    for (const auto& [where, times] : seen) ASSERT_EQ(times, 1);
  }
}

TEST(box, parts_are_as_large_as_they_may_be) {
  const std::array sides{box_strides{10, 100}};
  const auto first = [&](std::size_t most) { return box_parts({8, 5, 7}, sides, most).next()->extent; };
  EXPECT_EQ(first(700), (box_extent{8, 5, 7}));
  EXPECT_EQ(first(248), (box_extent{8, 5, 3}))
      << "the bytes of two distances of planes, and the 48 bytes of the last plane";
  EXPECT_EQ(first(247), (box_extent{8, 5, 2}));
  EXPECT_EQ(first(47), (box_extent{8, 4, 1}));
  EXPECT_EQ(first(8), (box_extent{8, 1, 1}));
  EXPECT_EQ(first(3), (box_extent{3, 1, 1}));
}

TEST(box, parts_of_a_row_at_the_end_of_the_numbers_come_to_an_end) {
  box_parts parts({too_many_bytes, 1, 1}, {}, too_many_bytes - 1);
  const std::array sides{box_strides{}};
  box_parts cut({too_many_bytes, 1, 1}, sides, too_many_bytes - 1);
  EXPECT_EQ(parts.next()->extent.width, too_many_bytes) << "of no side";
  EXPECT_FALSE(parts.next());
  EXPECT_EQ(cut.next()->extent.width, too_many_bytes - 1);
  EXPECT_EQ(cut.next()->x, too_many_bytes - 1);
  EXPECT_FALSE(cut.next());
}

}  // namespace
