#pragma once

#include <array>
#include <string>

#include "runtime/trace/stack_module.h"

namespace hpe::trace {

/// Where a thread is, by return addresses, innermost first.
struct call_stack {
  static constexpr int depth = 24;
  std::array<void*, depth> frames{};
  int count = 0;

  /// The stack of the calling thread. Safe in signal handlers once prepare() has been called in the process.
  [[nodiscard]] static call_stack here() noexcept;
  /// Loads the unwinders, and lets the calling thread use libunwind, which is about 20 times as fast as libgcc's but
  /// calls malloc when a thread uses it for the first time. So threads that have not called this use libgcc's. Call it
  /// again for each thread; it is cheap from the second time on. Not in signal handlers.
  static void prepare();
};

/// hpe_source_line of libhpe-stacks.so; nullptr if the library is not installed. Loads it. Not in signal handlers.
[[nodiscard]] decltype(&hpe_source_line) source_line_function();

/// A symbol as C++ writes it; symbols of C are returned unchanged. Not in signal handlers.
[[nodiscard]] std::string demangled(const char* symbol);

}  // namespace hpe::trace
