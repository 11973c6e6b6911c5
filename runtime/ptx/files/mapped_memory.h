#pragma once

#include <cstddef>

namespace hpe::ptx {

/// How many of the `most` bytes from `address` on are mapped in this process without a gap. Programs pass images
/// without a size, and a damaged image may state a wrong size. If a reader stays inside the mapped bytes, it reports an
/// error for these images instead of crashing. Pages without access count as mapped. Thread-safe.
[[nodiscard]] std::size_t mapped_bytes(const void* address, std::size_t most);

}  // namespace hpe::ptx
