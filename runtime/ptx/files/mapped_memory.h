#pragma once

#include <cstddef>

namespace hpe::ptx {

/// Returns how many of the `most` bytes from `address` on are mapped in this process without a gap. Programs pass
/// images without a size, and a damaged image may state a wrong size. A reader that stays inside the mapped bytes
/// reports an error for such an image instead of crashing. Pages without access rights count as mapped. Thread-safe.
[[nodiscard]] std::size_t mapped_bytes(const void* address, std::size_t most);

}  // namespace hpe::ptx
