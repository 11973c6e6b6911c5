#include "runtime/core/locate.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "runtime/base/error.h"

namespace hpe::core {

namespace fs = std::filesystem;

std::string find_own_kernels(const std::string& option) {
  if (!option.empty()) return option;
  std::vector<fs::path> folders;
  std::error_code ignored;
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&find_own_kernels), &library) != 0)
    folders.push_back(fs::canonical(library.dli_fname, ignored).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", ignored).parent_path() / ".." / "lib");
  std::string looked_in;
  for (const fs::path& folder : folders) {
    const fs::path candidate = (folder / "libhpe-kernels.so").lexically_normal();
    if (fs::exists(candidate, ignored)) return candidate;
    looked_in.append(" ").append(candidate.parent_path().string());
  }
  HPE_THROW(HPE_ERROR_NOT_FOUND, "libhpe-kernels.so was not found in{}; HPE_KERNELS can name it", looked_in);
}

}  // namespace hpe::core
