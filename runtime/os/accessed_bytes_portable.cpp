#include "runtime/os/accessed_bytes.h"

namespace hpe::os {

std::optional<accessed_bytes> bytes_accessed_by(const ucontext_t& /*context*/) noexcept { return std::nullopt; }

}  // namespace hpe::os
