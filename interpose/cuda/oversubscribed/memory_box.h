#pragma once

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace hpe::cuda_hooks {

/// Where a copy or fill of rows and planes begins in memory, and how far apart these lie there, in bytes.
struct box_place {
  CUdeviceptr base = 0;
  std::size_t pitch = 0;  ///< from a row to the next
  std::size_t slice = 0;  ///< from a plane to the next
};

/// A part of such a copy: its first byte, row and plane, and their numbers.
struct box_part {
  std::size_t x = 0, y = 0, z = 0;
  std::size_t width = 0, height = 1, depth = 1;

  [[nodiscard]] bool is_empty() const noexcept { return width == 0 || height == 0 || depth == 0; }
};

/// The address at which a part begins.
[[nodiscard]] CUdeviceptr begin_of(const box_place& place, const box_part& part) noexcept;
/// The bytes from the beginning of a part, which is not empty, to its last byte, gaps included. The greatest number if
/// that is no number of bytes.
[[nodiscard]] std::size_t extent_of(const box_place& place, const box_part& part) noexcept;

/// Calls visit for parts whose extents at all places are at most `most` bytes, a multiple of 512, until one fails:
/// planes, or else rows of a plane, or else bytes of a row.
CUresult for_each_part(const std::vector<box_place>& places, const box_part& whole, std::size_t most,
                       const std::function<CUresult(const box_part&)>& visit);

}  // namespace hpe::cuda_hooks
