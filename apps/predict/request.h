#pragma once

#include <string>
#include <vector>

#include "apps/predict/predictions.h"

namespace hpe::predict {

/// The values of the command line.
struct request {
  bool help = false, quiet = false;
  std::string specification;  ///< a file, or the name of an application in apps/predict/applications
  std::string machine;        ///< a file, or the name of a machine in apps/predict/machines
  range devices{1, 16};
  std::string where = "auto";
  std::string sizes, what_if;
  std::string trace, profile;  ///< one of them makes the specification, in place of a file
  std::string save_spec;       ///< where that specification goes
  std::string json, csv, charts, picture;
};

/// Throws bad_input for an unknown option or a value that is not possible.
[[nodiscard]] request parse(int argc, char** argv);

/// The text of --help.
[[nodiscard]] std::string help_text();

/// The file that a word of the command line means: itself, or the file of that name in this folder of hpe
/// ("machines" or "applications"). Throws bad_input with the names that are possible.
[[nodiscard]] std::string file_of(const std::string& word, const std::string& folder, const std::string& ending);

/// The topologies of the request on a machine: auto means distributed devices only where there is a network.
[[nodiscard]] std::vector<topology> topologies(const request& r, const machine_profile& m);

}  // namespace hpe::predict
