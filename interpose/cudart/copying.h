#pragma once

/// How the calls that copy and set memory give their work to streams.

#include <driver_types.h>

#include <cstddef>

namespace hpe::cudart {

/// The parameters of a copy between memory in one or two dimensions, as those of three.
[[nodiscard]] cudaMemcpy3DParms flat_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
[[nodiscard]] cudaMemcpy3DParms pitched_copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                             std::size_t width, std::size_t height, cudaMemcpyKind kind);

/// In the default stream; returns when it is done.
cudaError_t copy_now(const cudaMemcpy3DParms& what);

/// In a stream. Pageable memory is read before it returns, and written before it returns.
cudaError_t copy_in_stream(const cudaMemcpy3DParms& what, cudaStream_t handle);

/// The same for memsets; planes are height rows each.
cudaError_t set_now(const cudaMemsetParams& what, std::size_t planes = 1, std::size_t plane_height = 1);
cudaError_t set_in_stream(const cudaMemsetParams& what, cudaStream_t handle, std::size_t planes = 1,
                          std::size_t plane_height = 1);

}  // namespace hpe::cudart
