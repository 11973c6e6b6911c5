// The constructor at the end runs before main in every process into which hpe's runtime is preloaded: in the program
// given to `hpe run`, and in the programs that a script or mpirun starts. The constructor reads the files of the
// program and of its libraries. For most files, it needs only microseconds to find that they contain no CUDA code.

#include "interpose/soft/cudart/notice/relink_notice.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

std::vector<std::string> linked_runtimes(const std::string& path) { return ptx::linked_runtimes(path); }

namespace {

std::string relink_text(const std::string& path, bool has_ptx) {
  std::string text = fmt::format(
      "{} contains a static CUDA runtime, which needs NVIDIA's driver, so hpe cannot run its kernels on soft devices. "
      "Its CUDA calls fail, and a program that does not check them continues with wrong values. Link it again with the "
      "shared runtime: NVCC_APPEND_FLAGS=\"-cudart shared\" in the environment of nvcc, or "
      "-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared for CMake.",
      path);
  if (!has_ptx)
    text +=
        " It also contains only machine code for particular GPUs, but soft devices need PTX: "
        "NVCC_APPEND_FLAGS=\"-cudart shared -arch=compute_75\", or a newer architecture if the code needs one.";
  return text;
}

}  // namespace

std::optional<std::string> relink_notice(const std::string& path, const std::optional<cuda_parts>& parts) {
  if (!parts || !parts->has_own_runtime || !parts->has_functions || is_compiler(path)) return std::nullopt;
  return relink_text(path, parts->has_ptx);
}

std::string gpu_notice(const std::vector<std::string>& paths) {
  return fmt::format(
      "{}: these NVIDIA libraries contain a static CUDA runtime and kernels for particular GPUs, so they need NVIDIA's "
      "driver and a GPU; on soft devices their calls fail",
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

/// Writes the notices of the process, at most one for each file.
class notices {
 public:
  static notices& of_process() {
    // Never destroyed, because the program may open libraries until the process ends.
    static auto* const only = new notices;
    return *only;
  }

  void write(const std::vector<std::string>& paths, std::string_view text) {
    bool is_new = false;
    for (const std::string& path : paths) is_new = add(path) || is_new;
    if (is_new) write_log(log_level::warn, text);
  }

 private:
  bool add(const std::string& path) {
    std::error_code none;
    const std::filesystem::path file = std::filesystem::canonical(path, none);
    const lock_guard lock(mutex_);
    return paths_.insert(none ? path : file.string()).second;
  }

  mutex mutex_;
  std::set<std::string> paths_ HPE_GUARDED_BY(mutex_);
};

/// Runs body(notices) unless HPE_LOG switches notices off. If memory is too short for a notice, the program continues
/// without the notice. Ignores invalid options, because hpe's CUDA runtime reports them when it starts.
template <class Body>
void tell(const Body& body) noexcept {
  try {
    if (options::valid_in_environment().log == log_level::silent) return;
    body(notices::of_process());
  } catch (...) {  // NOLINT(bugprone-empty-catch): the program continues without the notice
  }
}

__attribute__((constructor)) void tell_at_start() noexcept {
  tell([](notices& all) {
    std::vector<std::string> files = loaded_files();
    const auto own = std::stable_partition(files.begin(), files.end(), needs_gpu);
    const std::vector<std::string> of_nvidia(files.begin(), own);
    if (!of_nvidia.empty()) all.write(of_nvidia, gpu_notice(of_nvidia));
    files.erase(files.begin(), own);
    for (const std::string& file : files)
      if (const auto text = relink_notice(file, read_cuda_parts(file))) all.write({file}, *text);
  });
}

}  // namespace

void tell_before_opening(const std::string& path) noexcept {
  tell([&](notices& all) {
    if (needs_gpu(path)) return all.write({path}, gpu_notice({path}));
    if (const auto text = relink_notice(path, read_cuda_parts(path))) all.write({path}, *text);
  });
}

void tell_of_runtime_at(const void* caller) noexcept {
  tell([&](notices& all) {
    Dl_info about{};
    if (::dladdr(caller, &about) == 0 || about.dli_fname == nullptr) return;
    const std::string path = about.dli_fname;
    if (is_compiler(path)) return;
    const auto parts = read_cuda_parts(path);
    all.write({path}, needs_gpu(path) ? gpu_notice({path}) : relink_text(path, !parts || parts->has_ptx));
  });
}

}  // namespace hpe::cudart
