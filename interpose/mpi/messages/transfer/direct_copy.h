#pragma once

/// Copies of a payload from device to device between processes of one machine: the receiver copies from the sender's
/// device, or the sender to the receiver's device.

#include <cstddef>
#include <optional>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/transfer/chunks.h"

namespace hpe::interpose::mpi {

/// The shape of a copy of rows to contiguous bytes.
[[nodiscard]] inline copied_rows to_one_run(const byte_rows& from) noexcept {
  return {from.width, from.rows, from.planes, {from.width, from.width * from.rows}, {from.pitch, from.plane_pitch}};
}

/// Starts a copy from exported memory. Returns false if this process cannot use the handle. The next calls of MPI make
/// the copy and then call `then`; until then both memories must be left alone. Call it under progress::guard.
[[nodiscard]] bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then);

/// Starts a copy from another process's driver memory, after the work that `queued` names (adopted_pointers.h).
[[nodiscard]] bool copy_directly(std::byte* to, const peer_bytes& from, const copied_rows& shape, std::uint64_t queued,
                                 transfer_over then);
/// Starts a copy to another process's driver memory.
[[nodiscard]] bool copy_directly(const peer_bytes& to, const std::byte* from, const copied_rows& shape,
                                 transfer_over then);
/// The same in two steps: begin_copy() returns nothing if no copy was started.
[[nodiscard]] std::optional<device_copy> begin_copy(const peer_bytes& to, const std::byte* from,
                                                    const copied_rows& shape);
void when_copied(const device_copy& what, std::size_t bytes, transfer_over then);

}  // namespace hpe::interpose::mpi
