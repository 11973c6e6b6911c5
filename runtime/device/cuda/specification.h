#pragma once

#include <optional>
#include <string>

namespace hpe::device::cuda {

/// What "cuda" or "cuda:N" asks for: the first N GPUs, or all of them (empty). Throws HPE_ERROR_INITIALIZATION for what
/// cannot be meant.
[[nodiscard]] std::optional<unsigned> parse_count(const std::string& text);

}  // namespace hpe::device::cuda
