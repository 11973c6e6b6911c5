#pragma once

#include <cstddef>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// How many of `bytes` bytes one read or write should stage. All, except for reads from pipes and stream sockets and
/// for writes to them that do not block: the kernel moves only a small part then, and staging the rest again for each
/// call would cost more than the transfer. Programs expect smaller counts from these calls.
[[nodiscard]] std::size_t most_of_stream(int file, std::size_t bytes, host_use use, bool never_blocks = false) noexcept;

}  // namespace hpe::interpose
