#pragma once

#include <string>

#include "runtime/base/error.h"

namespace hpe {

/// Returns whether the value of an option is 1. If the value is neither 0 nor 1, throws HPE_ERROR_INITIALIZATION with a
/// message that names the variable.
[[nodiscard]] inline bool is_on(const char* variable, const std::string& value) {
  HPE_REQUIRE(value == "0" || value == "1", HPE_ERROR_INITIALIZATION, "{}=\"{}\" is neither 0 nor 1", variable, value);
  return value == "1";
}

}  // namespace hpe
