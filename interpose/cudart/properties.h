#pragma once

/// What a soft device tells programs about itself in CUDA's words.

#include <driver_types.h>

#include "hpe/hpe.h"

namespace hpe::cudart {

/// The limits are those of a GPU of compute capability 9.0, because that is the PTX that the devices run; sizes and
/// counts are the soft device's own. What it does not have (sparse arrays, RDMA) is told as absent.
[[nodiscard]] cudaDeviceProp make_properties(const hpeDeviceInfo& info, int device);

/// An attribute by its number. Throws cudaErrorInvalidValue for one that CUDA does not have.
[[nodiscard]] int read_attribute(const cudaDeviceProp& properties, cudaDeviceAttr attribute);

}  // namespace hpe::cudart
