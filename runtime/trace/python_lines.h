#pragma once

#include <cstddef>

namespace hpe::trace {

/// Python source lines for call stacks of programs that CPython 3.11 to 3.13 runs. hpe reads the frames of the calling
/// thread from CPython's memory, because CPython's own functions need the interpreter's lock. Extension modules release
/// this lock before they call other libraries, and a stack may be taken in a signal handler.
class python_lines {
 public:
  /// Looks for a Python interpreter in the process, unless an earlier call has found one. Must not be called in signal
  /// handlers.
  static void find_interpreter();

  /// Whether find_interpreter() has found an interpreter.
  [[nodiscard]] static bool has_interpreter() noexcept;

  /// Returns "file:line" of the Python code that the calling thread executes: the innermost line outside of Python's
  /// own and installed modules; if there is no such line, the innermost line. Returns nullptr if the thread runs no
  /// Python code, or if find_interpreter() has found no interpreter of a known version. For the same line, the result
  /// is always the same address; the text is never freed. Safe in signal handlers.
  [[nodiscard]] static const char* here() noexcept;

  /// Whether a pointer is a result of here().
  [[nodiscard]] static bool is_one(const void* p) noexcept;
};

}  // namespace hpe::trace
