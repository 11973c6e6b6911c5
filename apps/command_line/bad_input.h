#pragma once

#include <stdexcept>

namespace hpe::command_line {

/// Something on the command line, or in a file that it names, that cannot be meant. The sentence says what was asked
/// and what is possible; the program ends with exit status 2.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hpe::command_line
