#pragma once

/// Programs for one GPU on all devices (hpe run --spread): to the program they are one device with the memory of all,
/// large allocations lie in parts on them, and each launch runs on as many of them as hpeLaunchOver decides.

#include <cstddef>
#include <vector>

#include "hpe/ptx.h"
#include "interpose/cudart/module/module.h"

namespace hpe::cudart {

/// Whether the process spreads its kernels (HPE_SPREAD). Throws hpe::error for another value than 0 and 1.
[[nodiscard]] bool spreads_kernels();

/// Device memory of cudaMalloc, of pools and of graphs: like hpeMallocOn, but in a process that spreads its kernels, an
/// allocation with a granule for each device lies in parts on all.
[[nodiscard]] hpeStatus allocate_device_memory(void** made, std::size_t bytes, int device);

/// Launches a kernel over all devices and waits for it. *fault is that of the first part that failed.
[[nodiscard]] hpeStatus run_over(kernel& what, const hpeGrid& shape, const std::vector<std::byte>& arguments,
                                 hpeFault* fault);

}  // namespace hpe::cudart
