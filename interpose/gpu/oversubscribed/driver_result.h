#pragma once

#include <cuda.h>

#include <exception>
#include <new>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

/// Returns the error code for a call of the program in which hpe has thrown this exception.
[[nodiscard]] inline CUresult result_of(const std::exception& e) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto* const known = dynamic_cast<const error*>(&e);
  switch (known != nullptr ? known->status() : HPE_ERROR_INTERNAL) {
    case HPE_ERROR_OUT_OF_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
    case HPE_ERROR_DEVICE_LOST: return CUDA_ERROR_LAUNCH_FAILED;
    case HPE_ERROR_NOT_A_REGION: return CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace hpe::cuda_hooks
