#pragma once

#include <stdexcept>

namespace hpe::command_line {

/// A command line, or a file that it names, is invalid. The message states the given value and the possible values; the
/// program ends with exit status 2.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hpe::command_line
