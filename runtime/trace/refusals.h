#pragma once

/// Counts pieces of an unmodified program's device work that hpe refused or that failed. A program that does not check
/// the results of its calls continues with wrong data. So hpe prints the count when the process ends and, with
/// HPE_STRICT=1, changes the exit status from 0 to 1.

#include <cstdint>

namespace hpe::trace {

/// Thread-safe.
class refusals {
 public:
  /// Counts one more piece of work. Returns whether it is the first one; the caller can then log the reason.
  static bool add() noexcept;
};

}  // namespace hpe::trace
