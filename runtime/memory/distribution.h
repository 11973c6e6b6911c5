#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::memory {

/// The home of each of `granules` granules of a striped region. nullptr means a block distribution over all devices.
/// The parts of a block distribution differ by one granule at most, the longer ones first; a chunk is rounded up to
/// granules. Throws HPE_ERROR_INVALID_DEVICE for a device that does not exist, HPE_ERROR_INVALID_ARGUMENT for what else
/// cannot be meant.
[[nodiscard]] std::vector<std::uint16_t> distribute(const hpeDistribution* distribution, std::size_t granules,
                                                    unsigned device_count);

}  // namespace hpe::memory
