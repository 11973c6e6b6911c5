#pragma once

/// The command lines of all programs of hpe, as tables. Each row has a setter for its value, which refers to variables
/// of one request; so a table must not outlive its request. CLI11 reads the words; it is included in options.cpp alone,
/// because it is slow to compile.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::command_line {

/// Stores the value of the option `name`. Throws bad_input for an invalid value.
using setter = std::function<void(const std::string& name, const std::string& value)>;

struct option {
  std::string name;   ///< with dashes; without dashes, as in SIZE: the positional argument (at most one)
  std::string value;  ///< the name of the value in help texts; empty for switches and positional arguments
  std::string help;   ///< may have several lines
  setter set;
};

/// Reads --name VALUE, --name=VALUE, --switch and the positional argument; -h is --help. If an option is given twice,
/// the last value wins. argv[0] is ignored. Throws bad_input for an option that is not in the table, a missing or
/// superfluous value and a superfluous argument; exceptions of setters pass through.
void read(const std::vector<option>& table, int argc, char** argv);

/// Reads options up to a program and its arguments, with or without "--" before it. Gives the program's place in argv;
/// argc if there is none. Throws as read does.
[[nodiscard]] int read_before_program(const std::vector<option>& table, int argc, char** argv);

/// The rows as lines of a help text, in two columns.
[[nodiscard]] std::string lines_of_help(const std::vector<option>& table);

/// The known word nearest to `word` in single-letter changes; empty if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace hpe::command_line
