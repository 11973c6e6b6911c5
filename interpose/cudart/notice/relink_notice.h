#pragma once

/// A program that has the CUDA runtime inside itself (linked statically, as nvcc does by default) never calls hpe's. It
/// is told so, with what to do, on standard error.

#include <optional>
#include <string>

#include "interpose/cudart/notice/cuda_parts.h"

namespace hpe::cudart {

/// The sentences for a file of which the parts are known; nothing for one that needs none: it is not of nvcc, or asks
/// for the shared runtime.
[[nodiscard]] std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts);

}  // namespace hpe::cudart
