// The additional behaviour of dlopen, dlsym and dlvsym (dl_entries.S):
// - If the program opens the driver, by any path, dlopen returns the shim. If there is no driver, dlopen returns the
//   dynamic linker's result.
// - A lookup of a driver entry returns hpe's hook for the driver's function of that name, or the driver's own function
//   if hpe has no hook for it. If the driver has no function of this name, the lookup fails.
#include <dlfcn.h>

#include <cstring>

#include "interpose/gpu/shim/find_driver.h"
#include "interpose/gpu/shim/function_lookup.h"
#include "interpose/gpu/shim/next_symbol.h"

namespace {

using namespace hpe::cuda_shim;

bool is_entry_name(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

bool is_shim(void* library) {
  void* const own = next_open(own_file(), RTLD_LAZY | RTLD_NOLOAD);
  if (own != nullptr) ::dlclose(own);
  return library == own;
}

// Hooks also replace functions that the program looks up in the driver's own library, which the program may have opened
// in another way than by dlopen.
template <class... Version>
void* look_up(void* library, const char* name, Version... version) {
  void* const behind = is_entry_name(name) && is_shim(library) ? driver() : nullptr;
  void* const found = next_look_up(behind != nullptr ? behind : library, name, version...);
  return is_entry_name(name) ? hook_for(found) : found;
}

}  // namespace

extern "C" {

const char* hpe_name_to_open(const char* file) {
  if (file == nullptr) return nullptr;
  const char* const slash = std::strrchr(file, '/');
  const char* const base = slash != nullptr ? slash + 1 : file;
  if (std::strncmp(base, "libcuda.so", std::strlen("libcuda.so")) != 0) return nullptr;
  path_buffer driver_path;
  path_buffer meant;
  if (!find_driver(wanted_driver(), driver_path)) return nullptr;
  if (std::strcmp(file, "libcuda.so.1") == 0) return own_file();
  if (slash == nullptr && !find_library(file, meant)) return nullptr;
  return same_file(slash != nullptr ? file : meant.text, driver_path.text) ? own_file() : nullptr;
}

void* hpe_dlsym(void* library, const char* name) { return look_up(library, name); }

void* hpe_dlvsym(void* library, const char* name, const char* version) { return look_up(library, name, version); }
}
