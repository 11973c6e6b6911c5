#pragma once

/// Programs and libraries with a statically linked CUDA runtime (nvcc's default) never call hpe's runtime. For such a
/// program or library, hpe prints a notice on standard error, which explains how to relink it. hpe prints the notice
/// when a process with such a program or library starts, when the process opens such a library, or at the latest when
/// the static runtime searches for NVIDIA's driver. HPE_LOG=silent suppresses the notice.

#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/files/cuda_parts.h"

namespace hpe::cudart {

using ptx::cuda_parts;
using ptx::is_compiler;
using ptx::needs_gpu;
using ptx::read_cuda_parts;

/// Returns the notice for a file with these parts; nullopt for a file that nvcc did not link or that does not contain a
/// CUDA runtime, and for NVIDIA's compilers (NVRTC), which need no GPU. Also returns nullopt for a file without
/// kernels: nvcc also links its runtime into programs that call only the driver. If such a program calls its runtime,
/// tell_of_runtime_at() writes the notice.
[[nodiscard]] std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts);

/// Returns the notice for those of NVIDIA's libraries that need a GPU (needs_gpu); `paths` must not be empty.
[[nodiscard]] std::string gpu_notice(const std::vector<std::string>& paths);

/// Calls ptx::linked_runtimes. hpe's driver library uses this function because it does not contain the code of
/// runtime/ptx.
[[nodiscard]] std::vector<std::string> linked_runtimes(const std::string& path);

/// Writes the notice about a file that the program is about to open, if the file needs a notice that has not been
/// written yet. For most files, the call takes only microseconds. Thread-safe.
void tell_before_opening(const std::string& path) noexcept;

/// Writes the notice about the file that contains the code at `caller`, unless this notice has been written already. To
/// be called when that code has requested a table of NVIDIA's driver (cuGetExportTable). Thread-safe.
void tell_of_runtime_at(const void* caller) noexcept;

}  // namespace hpe::cudart
