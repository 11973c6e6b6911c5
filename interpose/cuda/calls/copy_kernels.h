#pragma once

#include <array>
#include <memory>

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/calls/byte_places.h"
#include "interpose/cuda/context_parts.h"

namespace hpe::cuda_hooks {

/// Kernels of hpe that copy rows, loaded into a context of the program. Thread safe.
class copy_kernels {
 public:
  /// Throws hpe::error if the driver refuses to load the kernels.
  copy_kernels(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts);
  ~copy_kernels();
  copy_kernels(const copy_kernels&) = delete;
  copy_kernels& operator=(const copy_kernels&) = delete;

  /// Whether a kernel copies these rows faster than a copy engine.
  [[nodiscard]] static bool suit(const interpose::copied_rows& shape) noexcept;

  /// Queues a copy. The context must be current, and its kernels must reach the memory on both sides.
  [[nodiscard]] CUresult copy(CUdeviceptr to, CUdeviceptr from, const interpose::copied_rows& shape, CUstream stream);

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 31;
  static constexpr std::size_t unit_sizes = 5;  // 1, 2, 4, 8 and 16 bytes

  CUresult launch(byte_places to, byte_places from, std::size_t bytes, CUstream stream);

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, unit_sizes> functions_{};
};

}  // namespace hpe::cuda_hooks
