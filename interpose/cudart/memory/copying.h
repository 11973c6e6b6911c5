#pragma once

/// Functions with which the calls that copy or set memory queue their work in streams.

#include <driver_types.h>

#include <cstddef>

namespace hpe::cudart {

/// The parameters of a copy in one or two dimensions, in the form for three.
[[nodiscard]] cudaMemcpy3DParms flat_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
[[nodiscard]] cudaMemcpy3DParms pitched_copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                             std::size_t width, std::size_t height, cudaMemcpyKind kind);

/// Copies in the default stream and waits for the copy.
cudaError_t copy_now(const cudaMemcpy3DParms& what);

/// Queues a copy in a stream. If it reads or writes pageable memory, that has happened on return.
cudaError_t copy_in_stream(const cudaMemcpy3DParms& what, cudaStream_t handle);

/// Memsets in the default stream with a wait, and queued in a stream. A plane has plane_height rows.
cudaError_t set_now(const cudaMemsetParams& what, std::size_t planes = 1, std::size_t plane_height = 1);
cudaError_t set_in_stream(const cudaMemsetParams& what, cudaStream_t handle, std::size_t planes = 1,
                          std::size_t plane_height = 1);

}  // namespace hpe::cudart
