#pragma once

/// A payload that the receiver copies from the sender's device itself, or the sender to the receiver's: between
/// processes of one machine.

#include <cstddef>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/chunks.h"

namespace hpe::interpose::mpi {

/// Under progress::guard. Whether this process can use the handle; then the copy is made in the next calls of MPI, and
/// `then` gets a failure if the bytes are not (all) there. The memory must be left alone until then.
[[nodiscard]] bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then);

/// The same from the driver's memory, behind the work that `queued` stands for (adopted_pointers.h).
[[nodiscard]] bool copy_directly(std::byte* to, const peer_bytes& from, const copied_rows& shape, std::uint64_t queued,
                                 transfer_over then);
/// The same to the memory of another process.
[[nodiscard]] bool copy_directly(const peer_bytes& to, const std::byte* from, const copied_rows& shape,
                                 transfer_over then);

}  // namespace hpe::interpose::mpi
