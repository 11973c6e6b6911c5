#pragma once

#include <optional>

#include "hpe/error.hpp"

namespace hpe::interpose::mpi {

/// What went wrong first in something of many steps; what fails later follows from it.
class first_failure {
 public:
  template <class Action>
  void attempt(Action&& action) {
    try {
      action();
    } catch (const error& e) {
      if (!what_) what_ = e;
    }
  }

  [[nodiscard]] bool any() const noexcept { return what_.has_value(); }
  [[nodiscard]] const std::optional<error>& what() const noexcept { return what_; }

 private:
  std::optional<error> what_;
};

}  // namespace hpe::interpose::mpi
