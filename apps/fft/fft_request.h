#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/command_line/bad_input.h"
#include "apps/fft/fft.h"

namespace hpe::fft {

using command_line::bad_input;

/// The values of the command line.
struct request {
  bool help = false, quiet = false;
  bool sized = false;  ///< whether the command line gives the size
  problem what{.length = std::int64_t{1} << 20};
  settings how{.soft_effort = effort::estimate};
  bool twice = false;  ///< double precision
  bool inverse = false;
  bool only_plan = false;  ///< only print how the devices would share the work
  std::int64_t devices = 0, repeats = 5;
  std::int64_t seed = 1;
  std::string input, output, json;
};

/// Reads the options. Throws bad_input for an unknown option or an invalid value.
[[nodiscard]] request parse(int argc, char** argv);

/// Returns all forms with the names that --form accepts.
[[nodiscard]] std::vector<std::pair<std::string, form>> forms();

/// Returns the text of --help.
[[nodiscard]] std::string help_text();

}  // namespace hpe::fft
