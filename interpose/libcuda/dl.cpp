// The additional behaviour of dlopen (interpose/dl_open.S) in programs on soft devices.
//
// A program that opens libnvJitLink.so gets this library, which has none of that library's functions. nvJitLink makes
// machine code of PTX, which soft devices cannot run. Programs that look for it while they run, as Numba and cuda.core
// do, take an nvJitLink without functions for one that is too old, and link with the driver (cuLink), which keeps PTX.
// Libraries that are linked with nvJitLink load it as ever.
//
// A program that opens a file of NVIDIA's runtime by its path, also a copy under another name as wheels have them
// (libcudart.3eda8113.so.13), gets hpe's runtime for the same version of CUDA. If a library that it opens is linked
// with such a copy, a library without content that has the copy's name is loaded first: the dynamic linker takes it for
// the copy, and finds the functions in hpe's runtime, which is preloaded.
//
// A program that opens a library with a runtime of its own inside is told so.

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

#include "interpose/cudart/notice/relink_notice.h"

extern "C" void* hpe_next_dlopen();

namespace {

const std::string& own_file() {
  static const std::string file = [] {
    Dl_info about{};
    return ::dladdr(reinterpret_cast<const void*>(&own_file), &about) != 0 ? about.dli_fname : "";
  }();
  return file;
}

/// A file of hpe's runtime for a version of CUDA.
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

/// hpe's runtime for the version in the name of a file of NVIDIA's, such as libcudart.so.13.0.48; null for other names.
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

/// hpe's file in place of an existing file of NVIDIA's runtime; null for other files. libcudart.so is a symbolic link;
/// the name at the end of all links has the version.
const char* runtime_in_place_of(const std::filesystem::path& path) {
  if (!path.filename().native().starts_with("libcudart")) return nullptr;
  std::error_code none;
  const runtime* const found = runtime_of_name(std::filesystem::canonical(path, none).filename().native());
  return found != nullptr ? found->file.c_str() : nullptr;
}

/// Loads a library without content by a name. The file is a copy of libhpe-name.so, whose own name (its SONAME) is
/// HPE_PLACE_OF_A_NAME and so has room for others.
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

/// Once for each name of a copy of NVIDIA's runtime that a library is linked with.
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
    if (!path.has_parent_path()) return nullptr;  // to be searched: hpe's folder comes first
    if (const char* const runtime = runtime_in_place_of(path)) return runtime;
    load_names_for(path);
    hpe::cudart::tell_before_opening(path);
  } catch (const std::exception&) {  // without memory for names the program opens its file
  }
  return nullptr;
}

void* hpe_next_dlopen() {
  static void* const next = ::dlsym(RTLD_NEXT, "dlopen");
  return next;
}
}
