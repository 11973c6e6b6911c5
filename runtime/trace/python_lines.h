#pragma once

#include <cstddef>

namespace hpe::trace {

/// Lines of Python, for call stacks of programs that CPython 3.11 to 3.13 runs. CPython's own functions would need its
/// lock, which extension modules release before they call other libraries, and a stack may be taken in a signal
/// handler. So hpe reads the frames of the calling thread from CPython's memory.
class python_lines {
 public:
  /// Looks for an interpreter in the process, until one is found. Not in signal handlers.
  static void find_interpreter();

  /// "file:line" of the Python code that the calling thread executes: the innermost line outside of Python's own and
  /// installed modules, or else the innermost line. nullptr if the thread runs no Python code, or if find_interpreter()
  /// has found no interpreter of a known version. The same line always gives the same address, and the text is never
  /// freed. Safe in signal handlers.
  [[nodiscard]] static const char* here() noexcept;

  /// Whether a pointer is a result of here().
  [[nodiscard]] static bool is_one(const void* p) noexcept;
};

}  // namespace hpe::trace
