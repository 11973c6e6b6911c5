#pragma once

/// The driver's structures of copies and arrays in the runtime's forms, and back.

#include <cuda.h>
#include <driver_types.h>

namespace hpe::libcuda {

/// A copy. The driver counts bytes, the runtime elements if an array takes part. Throws cudaErrorInvalidValue for types
/// of memory that do not exist, null pointers, pitches that are too small and rows that do not consist of elements.
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY2D& from);
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D& from);
[[nodiscard]] cudaMemcpy3DParms copy_of(const CUDA_MEMCPY3D_PEER& from);

/// The inverse, for copies of graph nodes.
[[nodiscard]] CUDA_MEMCPY3D shape_of(const cudaMemcpy3DParms& from);

/// The format of elements. Throws cudaErrorInvalidValue for formats that do not exist, cudaErrorNotSupported for those
/// that soft devices do not have.
[[nodiscard]] cudaChannelFormatDesc format_of(CUarray_format format, unsigned channels);
[[nodiscard]] CUarray_format format_of(const cudaChannelFormatDesc& format);

}  // namespace hpe::libcuda
