#include "runtime/trace/location.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "runtime/trace/source_lines.h"

namespace hpe::trace {

namespace {

using line_function = bool(const void*, char*, std::size_t);

std::string folder_of_this_library() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&location_of), &about) == 0 || about.dli_fname == nullptr) return "";
  const std::string_view file = about.dli_fname;
  return std::string(file.substr(0, file.rfind('/') + 1));
}

line_function* find_line_function() {
  const std::string name = "libhpe-source-lines.so";
  void* library = ::dlopen((folder_of_this_library() + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? reinterpret_cast<line_function*>(::dlsym(library, "hpe_source_line")) : nullptr;
}

// A return address belongs to the instruction before it.
const void* call_before(const void* return_address) { return static_cast<const std::byte*>(return_address) - 1; }

// Libraries between the program and this one say nothing about where the program is.
bool is_between(const std::string& file) {
  static constexpr std::array<const char*, 4> between{"/libhpe", "/libcuda", "/libc.so", "/libasan"};
  return std::any_of(between.begin(), between.end(),
                     [&](const char* name) { return file.find(name) != std::string::npos; });
}

}  // namespace

std::string location_of(std::span<void* const> stack) {
  static line_function* const line_of = find_line_function();
  std::string fallback = "somewhere";
  bool named = false;
  for (void* const frame : stack) {
    const void* const at = call_before(frame);
    Dl_info about{};
    const bool known = ::dladdr(at, &about) != 0 && about.dli_fname != nullptr;
    if (known && is_between(about.dli_fname)) continue;
    char line[512];
    if (line_of != nullptr && line_of(at, line, sizeof line)) return line;
    if (named || !known) continue;
    named = true;
    fallback = about.dli_sname != nullptr
                   ? fmt::format("{} in {}", about.dli_sname, about.dli_fname)
                   : fmt::format("{}+{:#x}", about.dli_fname,
                                 static_cast<const std::byte*>(at) - static_cast<const std::byte*>(about.dli_fbase));
  }
  return fallback;
}

std::string location_of_caller() {
  std::array<void*, 24> stack{};
  const int frames = ::backtrace(stack.data(), static_cast<int>(stack.size()));
  return location_of(std::span(stack).first(static_cast<std::size_t>(frames)));
}

}  // namespace hpe::trace
