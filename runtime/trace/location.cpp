#include "runtime/trace/location.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string_view>

#include "runtime/base/demangled.h"
#include "runtime/trace/call_stack.h"
#include "runtime/trace/python_lines.h"

namespace hpe::trace {

namespace {

// A return address follows the call instruction, so the address before it lies within the call.
const void* call_before(const void* return_address) { return static_cast<const std::byte*>(return_address) - 1; }

// Whether a frame is the C library's return from a signal handler, `mov $15, %rax; syscall`. The next frame outwards is
// then the interrupted instruction itself, not a return address.
bool ends_handler(const void* frame) {
  static constexpr unsigned char code[]{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return std::memcmp(frame, code, sizeof code) == 0;
}

// Whether a file is hpe itself or a library that calls hpe for the program. Frames in these files are not places in the
// program.
bool is_between(const std::string& file) {
  static constexpr std::array<const char*, 7> between{"/libhpe", "/libcuda",  "/libc.so", "/libasan",
                                                      "/libmpi", "/libmpich", "/libopen-"};
  return std::any_of(between.begin(), between.end(),
                     [&](const char* name) { return file.find(name) != std::string::npos; });
}

}  // namespace

std::string location_of(std::span<void* const> stack) {
  if (!stack.empty() && python_lines::is_one(stack.back())) return static_cast<const char*>(stack.back());
  static std::mutex one_at_a_time;  // elfutils is not thread safe
  const std::lock_guard lock(one_at_a_time);
  const auto line_of = source_line_function();
  std::string fallback = "somewhere";
  bool named = false;
  bool interrupted = false;
  for (void* const frame : stack) {
    const void* const at = interrupted ? frame : call_before(frame);
    Dl_info about{};
    const bool known = ::dladdr(at, &about) != 0 && about.dli_fname != nullptr;
    interrupted = known && ends_handler(frame);
    if (known && is_between(about.dli_fname)) continue;
    char line[512];
    if (line_of != nullptr && line_of(at, line, sizeof line)) return line;
    if (named || !known) continue;
    named = true;
    fallback = about.dli_sname != nullptr
                   ? fmt::format("{} in {}", demangled(about.dli_sname), about.dli_fname)
                   : fmt::format("{}+{:#x}", about.dli_fname,
                                 static_cast<const std::byte*>(at) - static_cast<const std::byte*>(about.dli_fbase));
  }
  return fallback;
}

std::string location_of_caller() {
  call_stack::prepare();
  const call_stack stack = call_stack::here();
  return location_of(std::span(stack.frames).first(static_cast<std::size_t>(stack.count)));
}

}  // namespace hpe::trace
