#pragma once

/// The command lines of all hpe programs, as tables of options. Each row has a setter, which stores the option's value
/// in a variable of the program. A table must not outlive these variables. CLI11 parses the arguments. Only
/// command_options.cpp includes CLI11, because CLI11's header is slow to compile.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::command_line {

/// Stores the value of the option `name`. Throws bad_input for an invalid value.
using setter = std::function<void(const std::string& name, const std::string& value)>;

struct option {
  std::string name;   ///< with dashes; the positional argument (at most one) has a name without dashes, as in SIZE
  std::string value;  ///< the name of the value in help texts; empty for switches and positional arguments
  std::string help;   ///< the option's text in --help; may have several lines
  setter set;
};

/// Reads --name VALUE, --name=VALUE, --switch and the positional argument; -h is --help. If an option is given twice,
/// the last value wins. argv[0] is ignored. Throws bad_input for an option that is not in the table, for a missing or
/// superfluous value, and for a superfluous argument; passes on the exceptions of setters.
void read(const std::vector<option>& table, int argc, char** argv);

/// Reads the options that precede a program's name and its arguments; "--" may follow the options. Returns the index in
/// argv of the program's name, or argc if the command line names no program. Throws the same exceptions as read.
[[nodiscard]] int read_before_program(const std::vector<option>& table, int argc, char** argv);

/// Returns the rows as lines of a help text, in two columns.
[[nodiscard]] std::string lines_of_help(const std::vector<option>& table);

/// Returns the known word that is most similar to `word`, by single-letter changes; empty if none is similar.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace hpe::command_line
