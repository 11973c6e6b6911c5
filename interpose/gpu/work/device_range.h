#pragma once

#include <cstddef>
#include <optional>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Whether an address is in device memory that is not managed. Queries the driver in the current context.
[[nodiscard]] bool is_device_memory(const device::cuda::driver& cu, CUdeviceptr address);

/// An allocation in device memory that is not managed.
struct device_range {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
};

/// Returns the allocation that contains an address; nullopt if no allocation does. Queries the driver in the current
/// context.
[[nodiscard]] std::optional<device_range> device_range_at(const device::cuda::driver& cu, CUdeviceptr address);

}  // namespace hpe::cuda_hooks
