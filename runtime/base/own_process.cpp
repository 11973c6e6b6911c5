#include "runtime/base/own_process.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/error.h"

namespace hpe {

namespace fs = std::filesystem;

std::vector<std::string> own_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& file) {
    if (!file.empty()) folders.push_back(file.parent_path().string());
  };
  std::error_code ignored;
  Dl_info object{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folders), &object) != 0 && object.dli_fname != nullptr)
    add(fs::canonical(object.dli_fname, ignored));
  add(fs::read_symlink("/proc/self/exe", ignored));
  return folders;
}

std::string find_own_file(const std::string& name, std::initializer_list<const char*> relative, hpeStatus missing,
                          const char* option) {
  std::string looked_in;
  std::error_code ignored;
  for (const std::string& folder : own_folders())
    for (const char* const from_there : relative) {
      const fs::path candidate = (fs::path(folder) / from_there / name).lexically_normal();
      if (fs::is_regular_file(candidate, ignored)) return candidate;
      looked_in.append(" ").append(candidate.parent_path().string());
    }
  HPE_THROW(missing, "{} was not found in{}; set {} to its path", name, looked_in, option);
}

void* open_own_library(const char* name) {
  for (const std::string& folder : own_folders())
    for (const char* const from_there : {"", "../lib"})
      if (void* const found = ::dlopen((fs::path(folder) / from_there / name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return found;
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

fs::path own_cache_folder() {
  const char* const wished = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe): read only
  if (wished != nullptr && *wished == '/') return fs::path(wished) / "hpe";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): likewise
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache" / "hpe" : fs::path();
}

const char* rank_by_environment() noexcept {
  for (const char* const variable : rank_variables)
    if (const char* const rank = std::getenv(variable)) return rank;  // NOLINT(concurrency-mt-unsafe): read only
  return nullptr;
}

}  // namespace hpe
