#pragma once

/// Copies of a payload from device to device between processes of one machine: the receiver copies from the sender's
/// device, or the sender to the receiver's device.

#include <cstddef>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/chunks.h"

namespace hpe::interpose::mpi {

/// Starts a copy from exported memory. Returns false if this process cannot use the handle. The next calls of MPI make
/// the copy and then call `then`; until then both memories must be left alone. Call it under progress::guard.
[[nodiscard]] bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then);

/// Starts a copy from another process's driver memory, after the work that `queued` names (adopted_pointers.h).
[[nodiscard]] bool copy_directly(std::byte* to, const peer_bytes& from, const copied_rows& shape, std::uint64_t queued,
                                 transfer_over then);
/// Starts a copy to another process's driver memory.
[[nodiscard]] bool copy_directly(const peer_bytes& to, const std::byte* from, const copied_rows& shape,
                                 transfer_over then);

}  // namespace hpe::interpose::mpi
