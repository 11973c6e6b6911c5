#pragma once

/// Copies that the driver's descriptions with rows and planes describe, as boxes that can be divided.

#include <cuda.h>

#include <optional>

#include "interpose/cuda/oversubscribed/memory_box.h"

namespace hpe::cuda_hooks {

/// A copy of a box. A side that is an array of the driver has no place.
struct copied_box {
  std::optional<box_place> to, from;
  box_part whole;
};

[[nodiscard]] copied_box box_of(const CUDA_MEMCPY2D& description);
[[nodiscard]] copied_box box_of(const CUDA_MEMCPY3D& description);
[[nodiscard]] copied_box box_of(const CUDA_MEMCPY3D_PEER& description);

/// Describes a part of the described copy.
[[nodiscard]] CUDA_MEMCPY2D part_of(const CUDA_MEMCPY2D& description, const box_part& part);
[[nodiscard]] CUDA_MEMCPY3D part_of(const CUDA_MEMCPY3D& description, const box_part& part);
[[nodiscard]] CUDA_MEMCPY3D_PEER part_of(const CUDA_MEMCPY3D_PEER& description, const box_part& part);

}  // namespace hpe::cuda_hooks
