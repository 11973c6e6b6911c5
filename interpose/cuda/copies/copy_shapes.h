#pragma once

/// The ranges of copies that the driver's descriptions with rows and planes describe.

#include <cuda.h>

#include "interpose/cuda/adopted/adopted_memory.h"

namespace hpe::cuda_hooks {

/// Rows at equal distances, with a pitch on each side.
struct rows_of_copy {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::size_t width = 0;
  std::size_t count = 0;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;

  [[nodiscard]] bool is_one_run() const noexcept { return count == 1; }
};

/// A copy described by the driver's structures. is_plain() if both ends are memory with addresses (no arrays) and all
/// rows are at equal distances.
class copy_shape_of {
 public:
  explicit copy_shape_of(const CUDA_MEMCPY2D* description);
  explicit copy_shape_of(const CUDA_MEMCPY3D* description);
  explicit copy_shape_of(const CUDA_MEMCPY3D_PEER* description);

  [[nodiscard]] bool is_plain() const noexcept { return plain_; }
  [[nodiscard]] bool is_peer() const noexcept { return peer_; }
  [[nodiscard]] const rows_of_copy& rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return plain_ ? rows_.width * rows_.count : 0; }
  [[nodiscard]] used_range written() const noexcept { return {rows_.to, extent(rows_.to_pitch), true}; }
  [[nodiscard]] used_range read() const noexcept { return {rows_.from, extent(rows_.from_pitch), false}; }

 private:
  [[nodiscard]] std::size_t extent(std::size_t pitch) const noexcept {
    return rows_.count == 0 ? 0 : (rows_.count - 1) * pitch + rows_.width;
  }
  template <class Planes>
  void take_planes(const Planes& c);
  void join_rows() noexcept;

  rows_of_copy rows_;
  bool plain_ = false;
  bool peer_ = false;
};

}  // namespace hpe::cuda_hooks
