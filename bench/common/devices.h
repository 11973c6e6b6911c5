#pragma once

#include "hpe/hpe.hpp"

namespace hpe::bench {

/// Whether hpe's devices are GPUs. Calls device_info() once and keeps the result: device_info() makes the driver count
/// free memory, which is too slow for loops and for timed code.
[[nodiscard]] inline bool on_gpus() {
  static const bool result = device_info(0).kind == HPE_DEVICE_CUDA;
  return result;
}

}  // namespace hpe::bench
