// This file changes the behaviour of dlopen (interpose/dl_open.S) and dlmopen (dlm_open.S) in programs on soft devices,
// in three cases.
//
// 1. If the program opens libnvJitLink.so, dlopen returns this library, which defines none of nvJitLink's functions.
//    nvJitLink compiles PTX to machine code, which soft devices cannot run. Programs that search for nvJitLink at run
//    time, such as Numba and cuda.core, conclude from the missing functions that nvJitLink is too old, and link with
//    the driver (cuLink), which keeps the PTX. Libraries that are linked with nvJitLink load NVIDIA's library as usual.
//
// 2. If the program opens NVIDIA's runtime by a path, dlopen returns hpe's runtime for the same version of CUDA.
//    NVIDIA's runtime may have been renamed, as in Python wheels (libcudart.3eda8113.so.13). If the program opens a
//    library that is linked with a renamed copy, hpe first loads an empty library with the name of the copy. So the
//    dynamic linker does not load the copy, and finds the copy's functions in hpe's runtime, which is preloaded.
//
// 3. If the program opens a library that contains a statically linked runtime, hpe prints a notice.
//
// If a program opens the runtime or the driver in another namespace, dlmopen returns hpe's library of the base
// namespace: copies of NVIDIA's runtime share the driver's contexts and memory too, and a second copy of hpe's runtime
// would need address space of its own.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "interpose/soft/cudart/notice/relink_notice.h"

extern "C" void* hpe_next_dlopen();

namespace {

const std::string& own_file() {
  static const std::string file = [] {
    Dl_info about{};
    return ::dladdr(reinterpret_cast<const void*>(&own_file), &about) != 0 ? about.dli_fname : "";
  }();
  return file;
}

/// The file of hpe's CUDA runtime library for one version of CUDA.
struct runtime {
  std::string_view version;
  std::string file;
};

const auto& runtimes() {
  static const auto all = [] {
    const std::filesystem::path folder = std::filesystem::path(own_file()).parent_path();
    return std::array{runtime{".so.12", folder / "libcudart.so.12"}, runtime{".so.13", folder / "libcudart.so.13"}};
  }();
  return all;
}

/// Returns hpe's runtime for the version in a file name of NVIDIA's runtime, such as libcudart.so.13.0.48; null for
/// other names.
const runtime* runtime_of_name(std::string_view name) {
  if (!name.starts_with("libcudart")) return nullptr;
  for (const runtime& each : runtimes()) {
    const auto at = name.find(each.version);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = name.substr(at + each.version.size());
    if (rest.empty() || rest.front() == '.') return &each;
  }
  return nullptr;
}

/// Returns the file of hpe's runtime that replaces an existing file of NVIDIA's runtime; null for other files. Follows
/// symbolic links such as libcudart.so, because only the name of the file to which the links lead contains the version.
const char* runtime_in_place_of(const std::filesystem::path& path) {
  if (!path.filename().native().starts_with("libcudart")) return nullptr;
  std::error_code none;
  const runtime* const found = runtime_of_name(std::filesystem::canonical(path, none).filename().native());
  return found != nullptr ? found->file.c_str() : nullptr;
}

/// Loads an empty library with this name. The file is a copy of libhpe-name.so in which the name (SONAME) is replaced.
/// The original name, HPE_PLACE_OF_A_NAME, is long, so that other names fit into its space.
void load_by_name(const std::string& name) {
  constexpr std::string_view place = HPE_PLACE_OF_A_NAME;
  std::ifstream model(std::filesystem::path(own_file()).parent_path() / "libhpe-name.so", std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(model), std::istreambuf_iterator<char>()};
  const auto at = content.find(place);
  if (at == std::string::npos || name.size() > place.size()) return;
  content.replace(at, place.size(), name + std::string(place.size() - name.size(), '\0'));
  const int file = ::memfd_create("hpe-cuda-name", MFD_CLOEXEC);
  if (file < 0) return;
  const bool is_written = ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  using open_function = void* (*)(const char*, int);
  if (is_written) reinterpret_cast<open_function>(hpe_next_dlopen())(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ::close(file);
}

/// Loads an empty library for each renamed copy of NVIDIA's runtime with which `library` is linked. Loads each name
/// only once in a process.
void load_names_for(const std::filesystem::path& library) {
  static std::mutex mutex;
  static std::set<std::string> loaded;
  for (const std::string& name : hpe::cudart::linked_runtimes(library)) {
    const runtime* const own = runtime_of_name(name);
    if (own == nullptr || name == std::filesystem::path(own->file).filename()) continue;
    const std::scoped_lock lock(mutex);
    if (loaded.insert(name).second) load_by_name(name);
  }
}

}  // namespace

extern "C" {

const char* hpe_name_to_open(const char* file) {
  if (file == nullptr) return nullptr;
  try {
    const std::filesystem::path path = file;
    if (path.filename().native().starts_with("libnvJitLink.so")) return own_file().c_str();
    // For a name without a path, dlopen searches the library folders itself, and finds hpe's file first.
    if (!path.has_parent_path()) return nullptr;
    if (const char* const runtime = runtime_in_place_of(path)) return runtime;
    load_names_for(path);
    hpe::cudart::tell_before_opening(path);
  } catch (const std::exception&) {  // if host memory is too short, dlopen opens the file that the program has named
  }
  return nullptr;
}

const char* hpe_name_to_open_in_base(const char* file) {
  if (const char* const other = hpe_name_to_open(file)) return other;
  const std::string_view name = file != nullptr ? file : "";
  if (name == "libcuda.so" || name == "libcuda.so.1") return own_file().c_str();
  const runtime* const found = runtime_of_name(name);
  return found != nullptr ? found->file.c_str() : nullptr;
}

void* hpe_next_dlopen() {
  static void* const next = ::dlsym(RTLD_NEXT, "dlopen");
  return next;
}

void* hpe_next_dlmopen() {
  static void* const next = ::dlsym(RTLD_NEXT, "dlmopen");
  return next;
}
}
