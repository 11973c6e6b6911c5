#include "apps/hpe/installation.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "hpe/hpe.hpp"
#include "runtime/base/options.h"

namespace hpe::cli {

namespace fs = std::filesystem;

installation installation::own() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&hpeGetOptions), &about) == 0)
    throw error(HPE_ERROR_INTERNAL,
                "the file of libhpe.so cannot be found from the address of its function hpeGetOptions");
  const fs::path library = fs::canonical(about.dli_fname), folder = library.parent_path();
  return {library,
          folder / "libhpe-mpi.so",
          folder / "hpe" / "cuda" / "libcuda.so.1",
          folder / "hpe" / "cudart" / "libcudart.so.13",
          folder / "hpe" / "cudart" / "libcudart.so.12",
          folder / "hpe" / "cudart" / "libcuda.so.1"};
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value != nullptr ? value : "";
}

fs::path program_file(const std::string& name) {
  std::error_code ignored;
  const auto can_be_run = [&](const fs::path& file) {
    return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return can_be_run(name) ? fs::path(name) : fs::path();
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (can_be_run(fs::path(folder) / name)) return fs::path(folder) / name;
  return {};
}

bool has_driver() {
  void* const opened = ::dlopen(installation::own().shim.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto* const driver_file =
      opened != nullptr ? reinterpret_cast<const char* (*)()>(::dlsym(opened, "hpe_cuda_driver_file")) : nullptr;
  return driver_file != nullptr && driver_file() != nullptr;
}

bool lacks_the_shim() {
  if (fs::exists(installation::own().shim)) return false;
  const std::string named = options::valid_in_environment().cuda_driver;
  return ::dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

}  // namespace hpe::cli
