#pragma once

#include <array>
#include <cstddef>

/// The functions of libhpe-stacks.so, which takes stacks with libunwind and finds source lines with elfutils. The
/// library is loaded with dlopen. So a process loads libunwind and elfutils only when hpe profiles it or looks up a
/// place in the program, and the functions _Unwind_RaiseException and backtrace of libunwind never replace those of the
/// compiler and libc.
extern "C" {

/// Writes at most `capacity` return addresses of the calling thread's stack into frames, innermost first, and returns
/// their number. A thread's first call may call malloc; later calls are safe in signal handlers.
int hpe_take_stack(void** frames, int capacity);

/// Writes "file:line" of an instruction of this process into text. For an instruction of an inline function of hpe's
/// headers, this is the line of the call. Returns false, and writes nothing, if the instruction has no debug
/// information or no line outside of hpe's headers. Not thread safe.
bool hpe_source_line(const void* instruction, char* text, std::size_t capacity);
}

namespace hpe::trace {

/// The return addresses of a thread's stack, innermost first. If the thread runs Python code, its Python line follows
/// the addresses (python_lines.h).
struct call_stack {
  static constexpr int depth = 24;
  std::array<void*, depth> frames{};
  int count = 0;

  /// Returns the stack of the calling thread. Safe in signal handlers once prepare() has been called in the process.
  [[nodiscard]] static call_stack here() noexcept;
  /// Loads the unwinders, and lets the calling thread use libunwind. libunwind is about 20 times as fast as libgcc's
  /// unwinder, but calls malloc when a thread first uses it, so threads that have not called prepare() use libgcc's
  /// unwinder. Call prepare() in each thread; later calls in a thread are cheap. Must not be called in signal handlers.
  static void prepare();
};

/// Loads libhpe-stacks.so and returns its function hpe_source_line; nullptr if the library is not installed. Must not
/// be called in signal handlers.
[[nodiscard]] decltype(&hpe_source_line) source_line_function();

}  // namespace hpe::trace
