#pragma once

/// Copies of a payload from device to device between processes of one machine. The receiver copies from the sender's
/// device, or the sender copies to the receiver's device.

#include <cstddef>
#include <optional>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/transfer/chunks.h"

namespace hpe::interpose::mpi {

/// The shape of a copy from a box to contiguous bytes.
[[nodiscard]] inline box_copy to_one_run(const box& from) noexcept {
  return {from.extent, {from.extent.width, from.extent.width * from.extent.rows}, from.strides};
}

/// Starts a copy from exported memory. Returns false if this process cannot use the handle. The copy is made in the
/// next calls of MPI, and `then` is called afterwards; until then, the source and destination must not be used. Must be
/// called while a progress::guard exists.
[[nodiscard]] bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then);

/// Starts a copy from another process's driver memory. The copy runs after the work that `queued` identifies
/// (adopted_pointers.h).
[[nodiscard]] bool copy_directly(std::byte* to, const peer_bytes& from, const box_copy& shape, std::uint64_t queued,
                                 transfer_over then);
/// Starts a copy to another process's driver memory.
[[nodiscard]] bool copy_directly(const peer_bytes& to, const std::byte* from, const box_copy& shape,
                                 transfer_over then);
/// A copy to another process's driver memory in two steps: begin_copy() starts the copy, or returns nullopt if it
/// cannot; when_copied() calls `then` when the copy has ended.
[[nodiscard]] std::optional<device_copy> begin_copy(const peer_bytes& to, const std::byte* from, const box_copy& shape);
void when_copied(const device_copy& what, std::size_t bytes, transfer_over then);

}  // namespace hpe::interpose::mpi
