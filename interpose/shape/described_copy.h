#pragma once

/// Decodes CUDA's descriptions of copies of rows and planes (CUDA_MEMCPY2D, for example) into boxes of bytes. Both the
/// hooks for GPUs and hpe's own driver library use this code.

#include <cuda.h>

#include <optional>

#include "runtime/base/box.h"

namespace hpe::cuda_shape {

/// The source or the destination of a copy.
struct copy_side {
  bool is_array = false;              ///< true: an array of the driver; false: memory with addresses
  CUarray array = nullptr;            ///< the array, if is_array is true
  CUdeviceptr base = 0;               ///< if this side is memory: the address in the description
  std::size_t x = 0, y = 0, z = 0;    ///< the byte, row and plane at which the copy begins
  std::size_t pitch = 0, height = 0;  ///< distances: of rows in bytes, of planes in rows; unused for an array

  [[nodiscard]] constexpr box_strides strides() const noexcept { return {pitch, saturated_product(pitch, height)}; }
  /// The address of the first byte of the copy; 0 if this side is an array.
  [[nodiscard]] constexpr CUdeviceptr first() const noexcept {
    return is_array ? 0 : saturated_sum(base, strides().offset_of(x, y, z));
  }
};

struct described_copy {
  copy_side to, from;
  box_extent extent;

  /// Returns the copy as a box; a side that is an array has no strides.
  [[nodiscard]] constexpr box_copy shape() const noexcept { return {extent, to.strides(), from.strides()}; }
  [[nodiscard]] constexpr bool is_in_memory() const noexcept { return !to.is_array && !from.is_array; }
};

/// Returns the copy that a description describes; nullopt if a memory type in the description is invalid, or if the
/// copy exceeds the address space. The caller or the driver must detect other errors in a description (null pointers,
/// pitches smaller than the width).
[[nodiscard]] std::optional<described_copy> decoded(const CUDA_MEMCPY2D& description);
[[nodiscard]] std::optional<described_copy> decoded(const CUDA_MEMCPY3D& description);
[[nodiscard]] std::optional<described_copy> decoded(const CUDA_MEMCPY3D_PEER& description);

/// Returns the description of one part of a copy. `whole` is the decoded form of `description`.
[[nodiscard]] CUDA_MEMCPY2D part_of(CUDA_MEMCPY2D description, const described_copy& whole, const box_part& part);
[[nodiscard]] CUDA_MEMCPY3D part_of(CUDA_MEMCPY3D description, const described_copy& whole, const box_part& part);
[[nodiscard]] CUDA_MEMCPY3D_PEER part_of(CUDA_MEMCPY3D_PEER description, const described_copy& whole,
                                         const box_part& part);

}  // namespace hpe::cuda_shape
