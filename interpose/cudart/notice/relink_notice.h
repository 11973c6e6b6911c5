#pragma once

/// A program with a statically linked CUDA runtime (nvcc's default) never calls hpe's. The notice on standard error
/// says so, and how to relink.

#include <optional>
#include <string>

#include "interpose/cudart/notice/cuda_parts.h"

namespace hpe::cudart {

/// The notice for a file with these parts; nothing for a file that nvcc did not link or that uses the shared
/// runtime.
[[nodiscard]] std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts);

}  // namespace hpe::cudart
