#pragma once

#include <cstdint>
#include <string>

#include "runtime/trace/call_stack.h"

namespace hpe::check {

/// Where the program made a call, and which call.
struct call_place {
  std::string call;
  trace::call_stack stack;
  /// The place where the calling thread is.
  static call_place here(const char* call);
  /// Returns the place from which a short function was called that is in the stack; *this if it is not in the stack.
  [[nodiscard]] call_place outside_of(const void* function) const;
  /// Returns the place as file and line. Takes a long time, so call it only for reports.
  [[nodiscard]] std::string text() const;
  /// Equal for the same stack.
  [[nodiscard]] std::uint64_t hash() const noexcept;
};

}  // namespace hpe::check
