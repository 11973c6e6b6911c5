#include "runtime/core/api/locate.h"

#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/own_folders.h"

namespace hpe::core {

namespace fs = std::filesystem;

std::string find_own_kernels(const std::string& option) {
  if (!option.empty()) return option;
  std::string looked_in;
  std::error_code ignored;
  for (const std::string& folder : own_folders())
    for (const char* relative : {".", "../lib"}) {
      const fs::path candidate = (fs::path(folder) / relative / "libhpe-kernels.so").lexically_normal();
      if (fs::exists(candidate, ignored)) return candidate;
      looked_in.append(" ").append(candidate.parent_path().string());
    }
  HPE_THROW(HPE_ERROR_NOT_FOUND, "libhpe-kernels.so was not found in{}; HPE_KERNELS can name it", looked_in);
}

}  // namespace hpe::core
