#include "runtime/ptx/compiler/compiler.h"

#include <dlfcn.h>

#include <string>

#include "runtime/base/log.h"
#include "runtime/base/own_process.h"

namespace hpe::ptx {

namespace {

constexpr const char* library_name = "libhpe-ptx-compiler.so";

using compile_function = compiled_image* (*)(const image*);

// In this library's own folder, in lib folders next to it, or on the loader's search path.
std::vector<std::string> places() {
  std::vector<std::string> result;
  for (const std::string& folder : own_folders())
    for (const char* const relative : {"/", "/../lib/", "/../../lib/"})
      result.push_back(folder + relative + library_name);
  result.emplace_back(library_name);
  return result;
}

compile_function load() {
  std::string why;
  for (const std::string& place : places()) {
    if (void* const library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return reinterpret_cast<compile_function>(::dlsym(library, "hpe_ptx_compile"));
    why = ::dlerror();
  }
  log(log_level::warn, "kernels are interpreted, which is slow: {}", why);
  return nullptr;
}

}  // namespace

std::unique_ptr<compiled_image> compile(const image& what) {
  static const compile_function function = load();
  return std::unique_ptr<compiled_image>(function == nullptr ? nullptr : function(&what));
}

}  // namespace hpe::ptx
