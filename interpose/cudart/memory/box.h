#pragma once

/// Boxes of bytes in memory: every copy and memset is reduced to operations on boxes.

#include <driver_types.h>

#include <cstddef>

namespace hpe::cudart {

/// The size of a box: `depth` planes of `height` rows of `width` bytes. The functions below need a box that is not
/// empty.
struct box_extent {
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t depth = 1;

  [[nodiscard]] bool is_empty() const noexcept { return width == 0 || height == 0 || depth == 0; }
};

/// The position of a box: its first byte, and the distance in bytes between rows and between planes.
struct box {
  char* begin = nullptr;
  std::size_t row = 0;
  std::size_t plane = 0;

  /// Bytes from the first byte of the box to the end of its last row.
  [[nodiscard]] std::size_t span(const box_extent& extent) const noexcept {
    return (extent.depth - 1) * plane + (extent.height - 1) * row + extent.width;
  }
};

/// Throws cudaErrorInvalidPitchValue if rows overlap, and cudaErrorInvalidValue if the address is null or if the box
/// begins in a CUDA allocation and leaves it. With must_be_known, memory outside of all CUDA allocations is an error
/// too (cudaErrorInvalidValue).
void check_box(const box& where, const box_extent& extent, bool must_be_known);

/// Whether the address is ordinary memory of the program, which neither CUDA nor hpe allocated or registered.
[[nodiscard]] bool is_pageable(const void* address);

/// Copies a box. On return, a source in ordinary memory may be changed and a destination in ordinary memory may be
/// read. Throws hpe::error.
void copy_box(const box& to, const box& from, box_extent extent);

/// Sets elements of 1, 2 or 4 bytes to the lowest bytes of `value`. extent.width is in bytes.
void set_box(const box& to, box_extent extent, unsigned value, unsigned element_size);

}  // namespace hpe::cudart
