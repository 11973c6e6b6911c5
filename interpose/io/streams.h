#pragma once

#include <cstddef>

#include "interpose/buffer_access.h"

namespace hpe::interpose {

/// How much of `bytes` bytes one read or write should stage: all, except where the kernel would move a small part and
/// copying the rest back and forth each time would cost the more, the larger it is. That is reading from pipes and
/// stream sockets, and writing to those that do not block; there a smaller count is an answer that programs expect.
[[nodiscard]] std::size_t most_of_stream(int file, std::size_t bytes, host_use use, bool never_blocks = false) noexcept;

}  // namespace hpe::interpose
