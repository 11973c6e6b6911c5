#pragma once

/// Describes a soft device as CUDA describes a GPU.

#include <driver_types.h>

#include "hpe/hpe.h"

namespace hpe::cudart {

/// Returns the properties of a soft device. The limits are those of a GPU of compute capability 9.0, because soft
/// devices run PTX for that capability. The reported capability is the value of HPE_CUDA_CAPABILITY. Sizes and counts
/// describe the soft device itself. The properties report features that soft devices do not have (sparse arrays, RDMA)
/// as absent. Throws HPE_ERROR_INITIALIZATION for a capability that a soft device cannot report.
[[nodiscard]] cudaDeviceProp make_properties(const hpeDeviceInfo& info, int device);

/// Returns the value of a device attribute according to the properties. Throws cudaErrorInvalidValue for an attribute
/// that CUDA does not define.
[[nodiscard]] int read_attribute(const cudaDeviceProp& properties, cudaDeviceAttr attribute);

}  // namespace hpe::cudart
