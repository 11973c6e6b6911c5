#pragma once

/// The command lines of all programs of hpe, as tables. A table is made for one request: each row says where its value
/// goes, so the table lives no longer than the request. CLI11 reads the words; it is included in options.cpp alone,
/// because it is slow to compile.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::command_line {

/// Puts the value of the option of this name where it belongs. Throws bad_input for a value that is none.
using setter = std::function<void(const std::string& name, const std::string& value)>;

struct option {
  std::string name;   ///< with its dashes; without: a word that stands alone, as in SIZE. A table has at most one
  std::string value;  ///< what the value is called; empty: a switch, which takes none, or a word
  std::string help;   ///< may have several lines
  setter set;
};

/// Reads --name VALUE, --name=VALUE, --switch and the word that stands alone; -h is --help. Of an option that is given
/// twice, the last value counts. argv[0] is not looked at. Throws bad_input for an option that is not in the table, a
/// value that is missing or too much, a word that nothing takes, and what setters throw.
void read(const std::vector<option>& table, int argc, char** argv);

/// Reads options up to a program and its arguments, with or without "--" before it. Gives the program's place in argv;
/// argc if there is none. Throws as read does.
[[nodiscard]] int read_before_program(const std::vector<option>& table, int argc, char** argv);

/// The rows as lines of a help text, in two columns.
[[nodiscard]] std::string lines_of_help(const std::vector<option>& table);

/// The known word nearest to `word` in single-letter changes; empty if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace hpe::command_line
