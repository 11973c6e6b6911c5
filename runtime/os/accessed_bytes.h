#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hpe::os {

/// Bytes [begin, begin + bytes) of memory.
struct accessed_bytes {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

/// Returns the bytes of memory that the instruction of this context accesses. nullopt for instructions that this
/// function does not know, and for masked accesses. Of instructions that repeat, and of gathers, returns one element.
/// Async-signal-safe.
[[nodiscard]] std::optional<accessed_bytes> bytes_accessed_by(const ucontext_t& context) noexcept;

}  // namespace hpe::os
