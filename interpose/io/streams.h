#pragma once

#include <cstddef>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// The number of bytes, at most `bytes`, that one read or write should stage. The result is `bytes`, but at most 4 MiB
/// for reads from pipes and stream sockets and for non-blocking writes to them. In these cases, the operating system
/// transfers only a small part of a large buffer in each call, and staging the remaining bytes again for each call
/// would cost more than the transfer. Programs expect these calls to return smaller counts.
[[nodiscard]] std::size_t most_of_stream(int file, std::size_t bytes, host_use use, bool never_blocks = false) noexcept;

}  // namespace hpe::interpose
