#include "apps/modules/modules.h"

#include <dlfcn.h>

#include <filesystem>

#include "hpe/hpe.hpp"

namespace hpe::modules {

std::string path_of(const std::string& file) {
  Dl_info library{};
  const bool found = ::dladdr(reinterpret_cast<const void*>(&hpeInit), &library) != 0;
  return found ? (std::filesystem::absolute(library.dli_fname).parent_path() / file).string() : file;
}

std::string require(const std::string& file) {
  std::string path = path_of(file);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::path build = folder;
  while (build.has_relative_path() && !std::filesystem::exists(build / "CMakeCache.txt", ignored))
    build = build.parent_path();
  const std::string target = std::filesystem::path(file).stem().string().substr(std::string("lib").size());
  throw error(HPE_ERROR_NOT_FOUND,
              path + " is missing: " +
                  (build.has_relative_path() ? "cmake --build " + build.string() + " --target " + target + " makes it"
                                             : "hpe's installation is incomplete, so install hpe again"));
}

}  // namespace hpe::modules
