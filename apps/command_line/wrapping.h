#pragma once

/// Texts for people, in lines that fit the terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace hpe::command_line {

/// Returns the number of columns of standard output: from COLUMNS, else from the terminal, else 80; at least 40.
[[nodiscard]] std::size_t columns();

/// Returns the text in lines of at most `width` columns, divided at blanks; a longer word gets a line of its own. The
/// first line begins at column `indent`, and all other lines begin with `indent` blanks. Keeps the line breaks in the
/// text.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

/// Prints a help text. Wraps the paragraphs to fit the terminal. Prints indented lines unchanged, because they are
/// examples, or rows of options, which lines_of_help has already wrapped.
void print_help(std::string_view text);

}  // namespace hpe::command_line
