#pragma once

#include <array>
#include <string>

#include "runtime/trace/stack_module.h"

namespace hpe::trace {

/// The return addresses of a thread's stack, innermost first. Behind them, if the thread runs Python code, stands its
/// line (python_lines.h).
struct call_stack {
  static constexpr int depth = 24;
  std::array<void*, depth> frames{};
  int count = 0;

  /// The stack of the calling thread. Safe in signal handlers once prepare() has been called in the process.
  [[nodiscard]] static call_stack here() noexcept;
  /// Loads the unwinders, and lets the calling thread use libunwind. libunwind is about 20 times as fast as libgcc's
  /// unwinder but calls malloc at a thread's first use, so threads that have not called prepare() use libgcc's. Call it
  /// in each thread; later calls of a thread are cheap. Not in signal handlers.
  static void prepare();
};

/// hpe_source_line of libhpe-stacks.so; nullptr if the library is not installed. Loads it. Not in signal handlers.
[[nodiscard]] decltype(&hpe_source_line) source_line_function();

/// Demangles a C++ symbol; other symbols are returned unchanged. Not in signal handlers.
[[nodiscard]] std::string demangled(const char* symbol);

}  // namespace hpe::trace
