// The constructor at the end runs before main in every process into which hpe's runtime is preloaded: the program given
// to `hpe run`, and the programs that a script or mpirun starts. It reads the program's file and its libraries; for
// most of them it finds within microseconds that they have no CUDA. HPE_LOG=silent suppresses the notice.

#include "interpose/cudart/notice/relink_notice.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/log.h"

namespace hpe::cudart {

std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts) {
  if (!parts || parts->imports_runtime) return std::nullopt;
  std::string text = fmt::format(
      "{} has a CUDA runtime of its own inside, so hpe's cannot run its kernels on soft devices, and it needs NVIDIA's "
      "driver. "
      "Link it once more with the shared runtime: NVCC_APPEND_FLAGS=\"-cudart shared\" in the environment of nvcc, or "
      "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared for CMake.",
      path);
  if (!parts->has_ptx)
    text +=
        " It also has device code for particular GPUs only; soft devices need PTX: "
        "NVCC_APPEND_FLAGS=\"-cudart shared -arch=compute_75\", or a newer architecture if it asks for one.";
  return text;
}

bool needs_gpu(const std::string& path) {
  constexpr std::array<std::string_view, 9> names{"libcublas",   "libcudnn", "libcufft", "libcurand", "libcusolver",
                                                  "libcusparse", "libnccl",  "libnpp",   "libnvjpeg"};
  const std::string file = std::filesystem::path(path).filename();
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return file.starts_with(name); });
}

std::string gpu_notice(const std::vector<std::string>& paths) {
  return fmt::format(
      "{}: these libraries of NVIDIA's have a CUDA runtime of their own inside and kernels for particular GPUs, "
      "so they need NVIDIA's driver and a GPU; on soft devices their calls fail",
      fmt::join(paths, ", "));
}

namespace {

std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  const auto add = [](dl_phdr_info* object, std::size_t, void* list) {
    const std::string_view name = object->dlpi_name;  // empty for the program itself and for the vDSO
    if (!name.empty()) static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  ::dl_iterate_phdr(add, &files);
  std::error_code none;
  if (std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none); !none)
    files.insert(files.begin(), program);
  return files;
}

__attribute__((constructor)) void tell() noexcept {
  const char* const level = std::getenv("HPE_LOG");  // NOLINT(concurrency-mt-unsafe): before main
  if (level != nullptr && std::string_view(level) == "silent") return;
  try {
    std::vector<std::string> files = loaded_files();
    const auto own = std::stable_partition(files.begin(), files.end(), needs_gpu);
    if (own != files.begin()) write_log(log_level::warn, gpu_notice({files.begin(), own}));
    files.erase(files.begin(), own);
    for (const std::string& file : files)
      if (const auto text = relink_notice(file, read_cuda_parts(file))) write_log(log_level::warn, *text);
  } catch (...) {  // NOLINT(bugprone-empty-catch): without memory for a sentence the program goes on
  }
}

}  // namespace

}  // namespace hpe::cudart
