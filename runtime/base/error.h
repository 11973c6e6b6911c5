#pragma once

/// Inside the runtime, functions report failures by throwing hpe::error with a message written at the call site. The C
/// interface turns the exception into a status and keeps the message for the calling thread.

#include <fmt/core.h>

#include <new>

#include "hpe/error.hpp"

namespace hpe {

/// Throws HPE_ERROR_SYSTEM for a failed system call. The message consists of `what` and the text for errno.
[[noreturn]] void throw_system_error(const std::string& what);

/// Runs a step that frees something or cleans up. If memory is short, runs the step once more, because memory may have
/// become free. If the step throws, it must have had no effect.
template <class Step>
void try_twice(const Step& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    step();
  }
}

}  // namespace hpe

/// Throws hpe::error{status} with a formatted sentence.
#define HPE_THROW(status, ...) throw ::hpe::error((status), ::fmt::format(__VA_ARGS__))

/// Throws hpe::error{status} unless the condition holds. For errors of the caller.
#define HPE_REQUIRE(condition, status, ...)             \
  do {                                                  \
    if (!(condition)) HPE_THROW((status), __VA_ARGS__); \
  } while (false)

/// Throws HPE_ERROR_INTERNAL unless the condition holds. For conditions that only a bug in hpe can break.
#define HPE_INVARIANT(condition)                                                                                \
  HPE_REQUIRE((condition), HPE_ERROR_INTERNAL, "defect in hpe: {} does not hold ({}:{})", #condition, __FILE__, \
              __LINE__)
