#pragma once

#include <string>

#include "runtime/base/error.h"

namespace hpe {

/// The value of an option that is 0 or 1. Throws HPE_ERROR_INITIALIZATION, naming the variable, for any other.
[[nodiscard]] inline bool is_on(const char* variable, const std::string& value) {
  HPE_REQUIRE(value == "0" || value == "1", HPE_ERROR_INITIALIZATION, "{}=\"{}\" is neither 0 nor 1", variable, value);
  return value == "1";
}

}  // namespace hpe
