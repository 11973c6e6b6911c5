#pragma once

#include <stdexcept>
#include <string>

#include "hpe/hpe.h"

namespace hpe {

/// The exception that the C++ interface and the runtime itself throw: a status and its message.
class error : public std::runtime_error {
 public:
  error(hpeStatus status, const std::string& message) : std::runtime_error(message), status_(status) {}

  [[nodiscard]] hpeStatus status() const noexcept { return status_; }

 private:
  hpeStatus status_;
};

}  // namespace hpe
