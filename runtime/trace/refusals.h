#pragma once

/// Device work of an unmodified program that hpe did not queue, or that failed. A program that does not look at results
/// of calls goes on with wrong data; so the process tells the number of such pieces of work at its end, and with
/// HPE_STRICT=1 it ends with status 1 in place of 0.

#include <cstdint>

namespace hpe::trace {

/// Thread-safe.
class refusals {
 public:
  /// One more, of which the log tells the reason if it is the first one. Returns whether it is.
  static bool add() noexcept;
};

}  // namespace hpe::trace
