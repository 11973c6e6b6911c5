#pragma once

/// Copies of a payload from device to device, between processes of one machine. Either the receiver copies from the
/// sender's device, or the sender copies to the receiver's device.

#include <cstddef>
#include <optional>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/transfer/chunks.h"

namespace hpe::interpose::mpi {

/// Returns the shape of a copy from a box to contiguous bytes.
[[nodiscard]] inline box_copy to_one_run(const box& from) noexcept {
  return {from.extent, {from.extent.width, from.extent.width * from.extent.rows}, from.strides};
}

/// Starts a copy from exported hpe memory. Returns false if this process cannot access the exported memory. hpe copies
/// the bytes during the next calls of MPI and then calls `then`. Until `then` is called, the program must not use the
/// source or the destination. The caller must hold a progress::guard.
[[nodiscard]] bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then);

/// Starts a copy from memory that another process has allocated from the CUDA driver. The copy runs after the work that
/// `queued` identifies (adopted_pointers.h). Returns false if this process cannot access the memory.
[[nodiscard]] bool copy_directly(std::byte* to, const peer_bytes& from, const box_copy& shape, std::uint64_t queued,
                                 transfer_over then);
/// Starts a copy to memory that another process has allocated from the CUDA driver. Returns false if this process
/// cannot access the memory.
[[nodiscard]] bool copy_directly(const peer_bytes& to, const std::byte* from, const box_copy& shape,
                                 transfer_over then);
/// The same as the previous function, in two steps. begin_copy() starts the copy, and returns nullopt if this process
/// cannot access the memory. when_copied() makes hpe call `then` when the copy has ended.
[[nodiscard]] std::optional<device_copy> begin_copy(const peer_bytes& to, const std::byte* from, const box_copy& shape);
void when_copied(const device_copy& what, std::size_t bytes, transfer_over then);

}  // namespace hpe::interpose::mpi
