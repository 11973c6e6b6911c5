#include "runtime/ptx/compiler/compiler.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "runtime/base/own_process.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx {

namespace {

constexpr const char* library_name = "libhpe-ptx-compiler.so";

using compile_function = compiled_image* (*)(const compile_request*);

// Returns the paths at which hpe looks for the compiler's shared object, in order: this library's own folder, lib
// folders next to it, and the loader's search path.
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

compile_function loaded() {
  static const compile_function function = load();
  return function;
}

}  // namespace

void open_compiler() { static_cast<void>(loaded()); }

std::unique_ptr<compiled_image> compile(const image& what, const kernel_store& kept) {
  const compile_function function = loaded();
  if (function == nullptr) return nullptr;
  const compile_request request{what, kept, current_log_level(), reinterpret_cast<const void*>(&parse)};
  return std::unique_ptr<compiled_image>(function(&request));
}

kernel_store kernel_store_of(const options& option) {
  kernel_store kept;
  if (option.kernel_cache == "off" || option.kernel_cache_size == 0) return kept;
  kept.most_bytes = option.kernel_cache_size;
  if (!option.kernel_cache.empty()) {
    kept.folder = std::filesystem::absolute(option.kernel_cache);
  } else if (const std::filesystem::path folder = own_cache_folder(); !folder.empty()) {
    kept.folder = folder / "kernels";
  } else {
    log(log_level::info, "compiled kernels are not kept: neither XDG_CACHE_HOME nor HOME names a folder");
  }
  return kept;
}

}  // namespace hpe::ptx
