#pragma once

/// Functions that queue copies and memsets on streams, for the exported functions.

#include <driver_types.h>

#include <cstddef>

namespace hpe::cudart {

/// Return the parameters of a copy in one or two dimensions in the form for three dimensions.
[[nodiscard]] cudaMemcpy3DParms flat_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
[[nodiscard]] cudaMemcpy3DParms pitched_copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                             std::size_t width, std::size_t height, cudaMemcpyKind kind);

/// Queues a copy on the default stream and waits for it.
cudaError_t copy_now(const cudaMemcpy3DParms& what);

/// Queues a copy on a stream. If the source or the destination is pageable memory, returns only when the copy no longer
/// needs that memory, unless the stream is being captured.
cudaError_t copy_in_stream(const cudaMemcpy3DParms& what, cudaStream_t handle);

/// set_now queues a memset on the default stream and waits for it; set_in_stream queues a memset on a stream. The
/// distance between two planes is plane_height rows.
cudaError_t set_now(const cudaMemsetParams& what, std::size_t planes = 1, std::size_t plane_height = 1);
cudaError_t set_in_stream(const cudaMemsetParams& what, cudaStream_t handle, std::size_t planes = 1,
                          std::size_t plane_height = 1);

}  // namespace hpe::cudart
