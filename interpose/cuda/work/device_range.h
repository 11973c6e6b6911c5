#pragma once

#include <cstddef>
#include <optional>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Whether an address lies in device memory that is not managed, as the current context sees it.
[[nodiscard]] bool is_device_memory(const device::cuda::driver& cu, CUdeviceptr address);

/// An allocation of such memory.
struct device_range {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUcontext joined = nullptr;  ///< a context in which memory on several GPUs can be copied; null for other memory
};

/// The allocation that contains an address, as the current context sees it. Memory on several GPUs (spreading) is one
/// allocation, in every context.
[[nodiscard]] std::optional<device_range> device_range_at(const device::cuda::driver& cu, CUdeviceptr address);

}  // namespace hpe::cuda_hooks
