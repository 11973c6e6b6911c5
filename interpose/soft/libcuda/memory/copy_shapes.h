#pragma once

/// Converts the driver's structures for copies and arrays to the runtime's structures, and back.

#include <cuda.h>
#include <driver_types.h>

namespace hpe::libcuda {

/// Converts the description of a copy. The driver's description counts bytes; the runtime's counts elements if the
/// source or the destination is an array. Throws cudaErrorInvalidValue for invalid types of memory, null pointers,
/// pitches that are too small, and rows that do not consist of whole elements.
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY2D& from);
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D& from);
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D_PEER& from);

/// Converts in the opposite direction, for copies in graph nodes.
[[nodiscard]] CUDA_MEMCPY3D shape_of(const cudaMemcpy3DParms& from);

/// Converts the format of an array's elements. Throws cudaErrorInvalidValue for a number of channels other than 1, 2
/// and 4, and cudaErrorNotSupported for formats that soft devices do not support.
[[nodiscard]] cudaChannelFormatDesc format_of(CUarray_format format, unsigned channels);
[[nodiscard]] CUarray_format format_of(const cudaChannelFormatDesc& format);

}  // namespace hpe::libcuda
