// The additional behaviour of dlopen (interpose/dl_open.S): a program that opens libnvJitLink.so gets this library, which has
// none of that library's functions. nvJitLink makes machine code of PTX, which soft devices cannot run. Programs that look
// for it while they run, as Numba and cuda.core do, take an nvJitLink without functions for one that is too old, and link
// with the driver (cuLink), which keeps PTX. Libraries that are linked with nvJitLink load it as ever.

#include <dlfcn.h>

#include <cstring>

namespace {

const char* own_file() {
  static const char* const file = [] {
    Dl_info about{};
    return ::dladdr(reinterpret_cast<const void*>(&own_file), &about) != 0 ? about.dli_fname : nullptr;
  }();
  return file;
}

}  // namespace

extern "C" {

const char* hpe_name_to_open(const char* file) {
  if (file == nullptr) return nullptr;
  const char* const slash = std::strrchr(file, '/');
  const char* const name = slash != nullptr ? slash + 1 : file;
  constexpr const char* linker = "libnvJitLink.so";
  return std::strncmp(name, linker, std::strlen(linker)) == 0 ? own_file() : nullptr;
}

void* hpe_next_dlopen() {
  static void* const next = ::dlsym(RTLD_NEXT, "dlopen");
  return next;
}
}
