#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

/// The functions of libhpe-stacks.so: stacks by libunwind, source lines by elfutils. It is loaded with dlopen, so only
/// processes that ask for places load those libraries, and libunwind's own _Unwind_RaiseException and backtrace never
/// replace the compiler's and libc's.
extern "C" {

/// Writes the return addresses of the calling thread's stack into frames, innermost first, and returns how many. The
/// first call of a thread may call malloc; later ones are safe in signal handlers.
int hpe_take_stack(void** frames, int capacity);

/// Writes "file:line" of an instruction of this process into text; for an instruction of an inline function of hpe's
/// headers, the line of the call. Returns false, and writes nothing, if the instruction has no debug information or no
/// line outside of hpe's headers. Not thread safe.
bool hpe_source_line(const void* instruction, char* text, std::size_t capacity);
}

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

/// The place in the program of a call_stack, innermost frame first: the line of Python if the stack has one, or else
/// "file:line" of the innermost frame with debug information, or else the innermost function of the program. Frames of
/// hpe, CUDA and the C library are skipped. Loads libhpe-stacks.so, which reads debug information. Not in signal
/// handlers.
[[nodiscard]] std::string location_of(std::span<void* const> stack);
/// location_of() for the stack of the calling thread.
[[nodiscard]] std::string location_of_caller();

}  // namespace hpe::trace
