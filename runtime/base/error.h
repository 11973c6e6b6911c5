#pragma once

/// How the runtime reports failures inside itself: by throwing hpe::error, with the call site's own sentence.
/// The C interface turns it into a status and keeps the sentence for the thread.

#include <fmt/core.h>

#include <new>

#include "hpe/error.hpp"

namespace hpe {

/// Throws an error for a failed system call; reads errno.
[[noreturn]] void throw_system_error(const std::string& what);

/// For steps that take something away, or clean up: where memory is short for a moment, a second try succeeds. A step
/// that throws has done nothing.
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

/// Throws unless the condition holds. For what a caller can get wrong.
#define HPE_REQUIRE(condition, status, ...)             \
  do {                                                  \
    if (!(condition)) HPE_THROW((status), __VA_ARGS__); \
  } while (false)

/// Throws HPE_ERROR_INTERNAL unless the condition holds. For what only a defect of hpe can break.
#define HPE_INVARIANT(condition)                                                                                \
  HPE_REQUIRE((condition), HPE_ERROR_INTERNAL, "defect in hpe: {} does not hold ({}:{})", #condition, __FILE__, \
              __LINE__)
