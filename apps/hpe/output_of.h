#pragma once

#include <string>
#include <vector>

namespace hpe::cli {

struct program_output {
  std::string text;  ///< the program's standard output
  int status;        ///< wait status, as waitpid() stores it
};

/// Runs a program to its end and discards its standard error. words: the program's file and its arguments. Throws
/// std::system_error if the program cannot be started.
[[nodiscard]] program_output output_of(const std::vector<std::string>& words);

}  // namespace hpe::cli
