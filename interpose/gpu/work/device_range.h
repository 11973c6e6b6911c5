#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "runtime/base/box.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Whether an address is in device memory that is not managed. Queries the driver in the current context.
[[nodiscard]] bool is_device_memory(const device::cuda::driver& cu, CUdeviceptr address);

/// An allocation in device memory that is not managed.
struct device_range {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
};

/// Memory that a piece of device work uses, with the address and size that the program passes to the driver.
struct used_range {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool written = false;

  /// The address after the last byte; the highest address if the sum would overflow.
  [[nodiscard]] CUdeviceptr end() const noexcept { return saturated_sum(address, bytes); }
};

/// The memory that a copy reads and writes.
using copy_ranges = std::array<used_range, 2>;

/// Whether a copy and another piece of work, which use this memory, must run one after the other.
[[nodiscard]] inline bool conflict(const copy_ranges& copy, const used_range& other) noexcept {
  return std::ranges::any_of(copy, [&](const used_range& one) {
    return (one.written || other.written) && one.address < other.end() && other.address < one.end();
  });
}

/// Returns the allocation that contains an address; nullopt if no allocation does. Queries the driver in the current
/// context.
[[nodiscard]] std::optional<device_range> device_range_at(const device::cuda::driver& cu, CUdeviceptr address);

}  // namespace hpe::cuda_hooks
