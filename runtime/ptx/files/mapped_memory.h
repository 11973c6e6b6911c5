#pragma once

#include <cstddef>

namespace hpe::ptx {

/// Returns the number of bytes from `address` to the first unmapped page of this process, at most `most`. Programs pass
/// fat binaries without a size, and a damaged fat binary may state a wrong size. A reader that reads only mapped bytes
/// reports an error for a damaged fat binary instead of crashing. Pages without access rights count as mapped.
/// Thread-safe.
[[nodiscard]] std::size_t mapped_bytes(const void* address, std::size_t most);

}  // namespace hpe::ptx
