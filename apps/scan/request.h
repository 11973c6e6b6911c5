#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace hpe::scan {

/// Something on the command line or in a file that cannot be meant.
struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the command line asks for.
struct request {
  bool help = false;
  std::string file;  ///< elements to scan, as they lie in memory; empty: random ones
  std::string type = "i32";
  std::string op = "sum";
  bool exclusive = false;
  std::uint64_t length = 0;  ///< N; 0: the whole file, or 2^24
  std::uint64_t problems = 1;
  std::string how = "auto";
  std::string spread = "auto";
  std::uint64_t iterations = 0;
  std::uint64_t devices = 0;
  bool in_place = false;
  std::uint64_t repeats = 5;
  std::string output;
  bool explain = false;
  bool no_check = false;
};

/// Reads the options. Throws bad_input for an unknown option or a value that is none.
[[nodiscard]] request parse(int argc, char** argv);

[[nodiscard]] std::string help_text();

/// A count such as 1000, 2^28 or 64M (k, M, G: powers of 1024). Throws bad_input; `what` says what it is for.
[[nodiscard]] std::uint64_t count_of(const std::string& text, const std::string& what);

}  // namespace hpe::scan
