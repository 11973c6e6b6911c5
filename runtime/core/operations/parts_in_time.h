#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/core/memory/allocator.h"
#include "runtime/spread/footprint.h"

namespace hpe::core {

/// The blocks of a launch that each device runs at the same time, and the hpe memory that they use.
struct part_in_time {
  spread::part_of_devices blocks;
  std::vector<hpeAccess> accesses;
};

/// Cuts a launch whose memory does not fit on `count` devices into parts that run there one after the other; one part
/// if the bytes that the launch can touch fit together. Each part is to be queued as a submission of its own with its
/// accesses, so its data is on the devices, and data of earlier parts makes room. The data of the next part comes in
/// while a part runs, as far as there is room.
///
/// others: memory that each part uses besides its arrays, and that its accesses do not name. obstacle: why the grid
/// must not be cut, as "it uses ..."; empty if it may be. refusal: the error of the launch in one piece. Throws
/// HPE_ERROR_OUT_OF_MEMORY, with both, if it cannot run. Thread-safe.
[[nodiscard]] std::vector<part_in_time> cut_in_time(device::device_set& devices, allocator& memory,
                                                    const spread::kernel_model& kernel, const spread::launch& launch,
                                                    std::uint32_t count, std::span<const hpeAccess> others,
                                                    const std::string& obstacle, const std::string& refusal);

}  // namespace hpe::core
