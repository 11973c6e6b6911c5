#pragma once

/// Describes a soft device as CUDA describes a GPU.

#include <driver_types.h>

#include "hpe/hpe.h"

namespace hpe::cudart {

/// The limits are those of a GPU of compute capability 9.0, because the devices run PTX for that capability. The
/// reported capability is the value of HPE_CUDA_CAPABILITY. Sizes and counts describe the soft device itself. Features
/// that soft devices do not have (sparse arrays, RDMA) are reported as absent. Throws HPE_ERROR_INITIALIZATION for a
/// capability that a soft device cannot report.
[[nodiscard]] cudaDeviceProp make_properties(const hpeDeviceInfo& info, int device);

/// Returns the value of an attribute in the properties. Throws cudaErrorInvalidValue for an attribute that CUDA does
/// not define.
[[nodiscard]] int read_attribute(const cudaDeviceProp& properties, cudaDeviceAttr attribute);

}  // namespace hpe::cudart
