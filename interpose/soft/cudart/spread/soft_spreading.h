#pragma once

/// Runs programs that were written for one GPU on all devices (hpe run --spread). The program sees the devices as one
/// device, with the memory of all devices. Each device contains a part of every large allocation, and hpeLaunchOver
/// decides on how many devices each launch runs.

#include <cstddef>
#include <span>
#include <vector>

#include "hpe/ptx.h"
#include "interpose/soft/cudart/module/cudart_module.h"

namespace hpe::cudart {

/// Whether the process spreads its kernels (HPE_SPREAD). Throws hpe::error if an option in the environment is invalid.
[[nodiscard]] bool spreads_kernels();

/// Allocates device memory for cudaMalloc, for pools and for graphs, like hpeMallocOn. In a process that spreads its
/// kernels, an allocation that has at least one granule for each device is distributed over all devices.
[[nodiscard]] hpeStatus allocate_device_memory(void** made, std::size_t bytes, int device);

/// Launches a kernel on these devices, or on all devices if `devices` is empty, and waits until the launch has ended.
/// Sets *fault to the fault of the first part that failed.
[[nodiscard]] hpeStatus run_over(std::span<const int> devices, kernel& what, const hpeGrid& shape,
                                 const std::vector<std::byte>& arguments, hpeFault* fault);

}  // namespace hpe::cudart
