#pragma once

/// Boxes of bytes in memory, which all copies and memsets come down to.

#include <driver_types.h>

#include <cstddef>

namespace hpe::cudart {

/// Rows of width bytes, height of them in a plane, depth planes. Never empty where it is used.
struct box_extent {
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t depth = 1;

  [[nodiscard]] bool is_empty() const noexcept { return width == 0 || height == 0 || depth == 0; }
};

/// Where a box begins, and the bytes from one row and one plane to the next.
struct box {
  char* begin = nullptr;
  std::size_t row = 0;
  std::size_t plane = 0;

  /// Bytes from the first to behind the last.
  [[nodiscard]] std::size_t span(const box_extent& extent) const noexcept {
    return (extent.depth - 1) * plane + (extent.height - 1) * row + extent.width;
  }
};

/// Throws cudaErrorInvalidPitchValue for rows that overlap, and cudaErrorInvalidValue for an address that is null, for
/// a range that begins in memory of CUDA's and leaves it, and, where the device must be able to use it, for other
/// memory.
void check_box(const box& where, const box_extent& extent, bool must_be_known);

/// Whether the program's own memory, which CUDA does not know, holds it.
[[nodiscard]] bool is_pageable(const void* address);

/// Copies. Returns when an ordinary source may be changed and an ordinary destination be read.
/// Throws hpe::error.
void copy_box(const box& to, const box& from, box_extent extent);

/// Sets elements of 1, 2 or 4 bytes to the lowest bytes of value. The width is bytes.
void set_box(const box& to, box_extent extent, unsigned value, unsigned element_size);

}  // namespace hpe::cudart
