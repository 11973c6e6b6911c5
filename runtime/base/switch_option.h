#pragma once

#include <string>

#include "runtime/base/error.h"

namespace hpe {

/// Whether an option, which must be 0 or 1, is 1. Throws HPE_ERROR_INITIALIZATION, which names the variable, for any
/// other value.
[[nodiscard]] inline bool is_on(const char* variable, const std::string& value) {
  HPE_REQUIRE(value == "0" || value == "1", HPE_ERROR_INITIALIZATION, "{}=\"{}\" is neither 0 nor 1", variable, value);
  return value == "1";
}

}  // namespace hpe
