#pragma once

#include "hpe/hpe.hpp"

namespace hpe::bench {

/// Whether hpe's devices are GPUs. The runtime is asked once: what it tells of a device has the driver counting memory,
/// which is not for loops nor for what is timed.
[[nodiscard]] inline bool on_gpus() {
  static const bool result = device_info(0).kind == HPE_DEVICE_CUDA;
  return result;
}

}  // namespace hpe::bench
