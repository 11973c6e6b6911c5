#pragma once

#include <cstdint>
#include <string>

#include "apps/command_line/bad_input.h"
#include "apps/scan/scan_operation.h"

namespace hpe::scan {

using command_line::bad_input;

/// The values of the command line.
struct request {
  bool help = false, quiet = false;
  std::string file;  ///< elements to scan, .npy or raw; empty: random elements
  std::string type;  ///< empty: the type of the file, or i32
  std::string op = "sum";
  bool exclusive = false;
  std::uint64_t length = 0;    ///< N; 0: the length in the file, or 2^24
  std::uint64_t problems = 0;  ///< 0: the number in the file, or 1
  std::string how = "auto";
  std::string spread = "auto";
  std::uint64_t iterations = 0;
  std::int64_t devices = 0, repeats = 5;
  bool in_place = false;
  std::string output, json;
  bool explain = false;
  bool no_check = false;
};

/// Reads the options. Throws bad_input for an unknown option or an invalid value.
[[nodiscard]] request parse(int argc, char** argv);

[[nodiscard]] std::string help_text();

/// Returns the operator that the option --operator names.
[[nodiscard]] built_in operator_named(const std::string& name);

}  // namespace hpe::scan
