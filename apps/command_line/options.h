#pragma once

/// What the applications of the hpe command share: options as tables. A table is made for one request: each row says
/// where its value goes, so the table lives no longer than the request.

#include <functional>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::command_line {

/// Puts the value of the option of this name where it belongs. Throws bad_input for a value that is none.
using setter = std::function<void(const std::string& name, const std::string& value)>;

struct option {
  std::string name;   ///< with its dashes
  std::string value;  ///< what the value is called; empty: a switch, which takes none
  std::string help;   ///< may have several lines
  setter set;
};

/// Reads --name VALUE, --name=VALUE and --switch; -h is --help. A word without dashes goes to *file; a second one, or
/// one where file is null, is an error. argv[0] is not looked at. Throws bad_input for what is not in the table, a
/// value that is missing or too much, and what setters throw.
void read(const std::vector<option>& table, int argc, char** argv, std::string* file = nullptr);

/// The rows as lines of a help text, in two columns; the second begins at `column`.
[[nodiscard]] std::string lines_of_help(const std::vector<option>& table, std::size_t column);

}  // namespace hpe::command_line
