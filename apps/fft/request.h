#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "apps/fft/fft.h"

namespace hpe::fft {

/// What was asked for is not possible; the sentence says what is.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the command line asks for.
struct request {
  bool help = false;
  bool sized = false;  ///< --size was given
  problem what{.length = std::int64_t{1} << 20};
  settings how{.soft_effort = effort::estimate};
  bool twice = false;  ///< double precision
  bool inverse = false;
  std::int64_t repeats = 5;
  std::int64_t seed = 1;
  std::string input;
  std::string output;
};

/// Reads the options. Throws bad_input for an unknown option or a value that is none.
[[nodiscard]] request parse(int argc, char** argv);

/// The text of --help.
[[nodiscard]] std::string help_text();

}  // namespace hpe::fft
