#pragma once

#include <stdexcept>
#include <string>

#include "hpe/hpe.h"

namespace hpe {

/// What the C++ view throws, and what the runtime itself throws inside: a status with its sentence.
class error : public std::runtime_error {
 public:
  error(hpeStatus status, const std::string& message) : std::runtime_error(message), status_(status) {}

  [[nodiscard]] hpeStatus status() const noexcept { return status_; }

 private:
  hpeStatus status_;
};

}  // namespace hpe
