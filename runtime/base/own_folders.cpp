#include "runtime/base/own_folders.h"

#include <dlfcn.h>

#include <filesystem>

namespace hpe {

std::vector<std::string> own_folders() {
  namespace fs = std::filesystem;
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

}  // namespace hpe
