#pragma once

#include <optional>
#include <string>

namespace hpe::device::cuda {

/// Parses "cuda" (all GPUs; empty) or "cuda:N" (the first N GPUs). Throws HPE_ERROR_INITIALIZATION for other
/// text.
[[nodiscard]] std::optional<unsigned> parse_count(const std::string& text);

}  // namespace hpe::device::cuda
