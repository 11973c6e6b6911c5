#pragma once

/// A program with a statically linked CUDA runtime (nvcc's default) never calls hpe's. The notice on standard error
/// says so, and how to relink.

#include <optional>
#include <string>
#include <vector>

#include "interpose/cudart/notice/cuda_parts.h"

namespace hpe::cudart {

/// The notice for a file with these parts; nothing for a file that nvcc did not link or that uses the shared
/// runtime.
[[nodiscard]] std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts);

/// Whether a file is one of NVIDIA's libraries of kernels (cuBLAS, cuFFT), by its name. Nobody else can relink them.
[[nodiscard]] bool needs_gpu(const std::string& path);

/// The notice for such files, of which there is at least one.
[[nodiscard]] std::string gpu_notice(const std::vector<std::string>& paths);

}  // namespace hpe::cudart
