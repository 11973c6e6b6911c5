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
  if (!std::filesystem::exists(path, ignored)) throw error(HPE_ERROR_NOT_FOUND, file + " is not beside libhpe.so");
  return path;
}

}  // namespace hpe::modules
