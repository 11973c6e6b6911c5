#pragma once

/// CUDA's description of a soft device.

#include <driver_types.h>

#include "hpe/hpe.h"

namespace hpe::cudart {

/// The limits are those of a GPU of compute capability 9.0, because the devices run PTX for it; sizes and counts are
/// the soft device's own. Missing features (sparse arrays, RDMA) are reported as absent.
[[nodiscard]] cudaDeviceProp make_properties(const hpeDeviceInfo& info, int device);

/// An attribute by its number. Throws cudaErrorInvalidValue for one that CUDA does not have.
[[nodiscard]] int read_attribute(const cudaDeviceProp& properties, cudaDeviceAttr attribute);

}  // namespace hpe::cudart
