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
  std::string trace, profile;  ///< file from which to make the specification, in place of `specification`
  std::string save_spec;       ///< file to write the specification to
  std::string json, csv, charts, picture;
};

/// Throws bad_input for an unknown option or a value that is not possible.
[[nodiscard]] request parse(int argc, char** argv);

/// Returns the text of --help.
[[nodiscard]] std::string help_text();

/// Returns the file that a word of the command line means: the word itself if such a file exists; otherwise the file
/// `word` + `ending` in hpe's folder `folder` ("machines" or "applications"). If neither exists, throws bad_input,
/// which lists the possible names.
[[nodiscard]] std::string file_of(const std::string& word, const std::string& folder, const std::string& ending);

/// Returns the topologies of the request on a machine: auto includes distributed devices only if the machine has a
/// network.
[[nodiscard]] std::vector<topology> topologies(const request& r, const machine_profile& m);

}  // namespace hpe::predict
