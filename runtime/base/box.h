#pragma once

/// Boxes of bytes: planes of rows of bytes, with gaps between rows and between planes. These types describe every copy
/// and fill of more than one dimension.
///
/// Programs choose the sizes and strides. If a sum or product exceeds the range of std::size_t, the result is
/// `too_many_bytes`. This value is larger than any memory, so a comparison with the size of an allocation detects the
/// error.

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace hpe {

inline constexpr std::size_t too_many_bytes = std::numeric_limits<std::size_t>::max();

/// a + b and a * b, at most too_many_bytes. saturated_sum also computes the end of a range of addresses: a range that
/// would end beyond the last address ends at the last address.
[[nodiscard]] constexpr std::size_t saturated_sum(std::size_t a, std::size_t b) noexcept {
  std::size_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? too_many_bytes : result;
}
[[nodiscard]] constexpr std::size_t saturated_product(std::size_t a, std::size_t b) noexcept {
  std::size_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? too_many_bytes : result;
}

/// The size of a box.
struct box_extent {
  std::size_t width = 0;  ///< the number of bytes in a row
  std::size_t rows = 1;   ///< the number of rows in a plane
  std::size_t planes = 1;

  [[nodiscard]] constexpr bool is_empty() const noexcept { return width == 0 || rows == 0 || planes == 0; }
  [[nodiscard]] constexpr bool is_one_row() const noexcept { return rows == 1 && planes == 1; }
  /// The number of bytes in the box, without the gaps.
  [[nodiscard]] constexpr std::size_t bytes() const noexcept {
    return is_empty() ? 0 : saturated_product(saturated_product(width, rows), planes);
  }
  friend constexpr bool operator==(const box_extent&, const box_extent&) = default;
};

/// Distances in memory, in bytes.
struct box_strides {
  std::size_t row = 0;    ///< the distance from one row to the next; any value if there is only one row
  std::size_t plane = 0;  ///< the distance from one plane to the next; any value if there is only one plane

  /// The distance from the first byte of a box to byte x of row y of plane z.
  [[nodiscard]] constexpr std::size_t offset_of(std::size_t x, std::size_t y, std::size_t z) const noexcept {
    return saturated_sum(saturated_product(z, plane), saturated_sum(saturated_product(y, row), x));
  }
  friend constexpr bool operator==(const box_strides&, const box_strides&) = default;
};

/// A box in memory.
struct box {
  box_extent extent;
  box_strides strides;

  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return extent.bytes(); }
  /// The number of bytes from the first byte to the end of the last row, with the gaps.
  [[nodiscard]] constexpr std::size_t span() const noexcept {
    if (extent.is_empty()) return 0;
    return saturated_sum(strides.offset_of(0, extent.rows - 1, extent.planes - 1), extent.width);
  }
  /// The same bytes in as few rows as possible: see box_copy::joined().
  [[nodiscard]] box joined() const noexcept;
  /// Calls visit(offset of the row's first byte) for each row, in order.
  template <class Visit>
  constexpr void for_each_row(Visit visit) const {
    for (std::size_t z = 0; z < extent.planes; ++z)
      for (std::size_t y = 0; y < extent.rows; ++y) visit(strides.offset_of(0, y, z));
  }
  friend constexpr bool operator==(const box&, const box&) = default;
};

/// A box, `offset` bytes after an address that is stored elsewhere.
struct placed_box {
  std::ptrdiff_t offset = 0;
  box shape;
};

/// A copy of one box to another box of the same extent.
struct box_copy {
  box_extent extent;
  box_strides to{}, from{};

  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return extent.bytes(); }
  [[nodiscard]] constexpr box written() const noexcept { return {extent, to}; }
  [[nodiscard]] constexpr box read() const noexcept { return {extent, from}; }
  /// Returns the same copy with fewer and longer rows. Rows without gaps on both sides are joined. Planes are merged
  /// into one series of rows if each plane has only one row, or if on each side all rows are equally spaced, also from
  /// one plane to the next. So is_one_row() is true for a copy of one range of bytes.
  [[nodiscard]] box_copy joined() const noexcept;
  /// Calls visit(offset of the row in the target, in the source) for each row, in order.
  template <class Visit>
  constexpr void for_each_row(Visit visit) const {
    for (std::size_t z = 0; z < extent.planes; ++z)
      for (std::size_t y = 0; y < extent.rows; ++y) visit(to.offset_of(0, y, z), from.offset_of(0, y, z));
  }
  friend constexpr bool operator==(const box_copy&, const box_copy&) = default;
};

/// A part of a box. x, y and z give the position of the part's first byte in the box: byte of the row, row of the
/// plane, and plane.
struct box_part {
  std::size_t x = 0, y = 0, z = 0;
  box_extent extent;
};

/// Cuts a box into parts, each of which spans at most `most` bytes with each of the given strides. A part is a group of
/// planes; if a plane is too large, a group of rows of a plane; and if a row is too large, a range of bytes of a row.
/// Not thread-safe.
class box_parts {
 public:
  /// most: at least 1. Rows are cut at multiples of `most` bytes.
  box_parts(const box_extent& whole, std::span<const box_strides> sides, std::size_t most);
  /// Returns the next part, in the order of the bytes; nullopt after the last part.
  [[nodiscard]] std::optional<box_part> next() noexcept;

 private:
  box_extent whole_;
  box_extent step_;
  box_part at_;  // where the next part begins; its extent is unused
};

}  // namespace hpe
