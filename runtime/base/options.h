#pragma once

/// The table of all options that a user can set. To add an option, add a line to options.def. `hpe help options`, the
/// reading of environment variables and the error messages all use options.def.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/choices.h"

namespace hpe {

/// The value of every option. Sizes are in bytes, times in seconds.
struct options {
#define HPE_OPTION_TEXT(field, variable, initial, sentence) std::string field = initial;
#define HPE_OPTION_SIZE(field, variable, initial, sentence) std::uint64_t field = initial;
#define HPE_OPTION_SWITCH(field, variable, initial, sentence) bool field = initial;
#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence) type field = type::initial;
#include "runtime/base/options.def"

  /// Returns the default values, overridden by the values in the environment. If a value is invalid, throws
  /// HPE_ERROR_INITIALIZATION with a message that names the variable and the valid values.
  static options from_environment();
  /// Like from_environment(), but uses the default in place of each invalid value. For code that runs before another
  /// part of hpe calls from_environment() and reports the error.
  static options valid_in_environment();
};

/// Returns a message for each environment variable whose name is almost the name of an option; the message contains
/// both names. Other variables that begin with HPE_ are assumed to belong to the program.
[[nodiscard]] std::vector<std::string> misspelt_options();

/// A line of options.def, for help texts.
struct option_description {
  std::string variable;
  std::string initial;
  std::string sentence;
  std::string group;                     ///< the heading of the option's group in help texts
  std::vector<std::string_view> values;  ///< the possible values; empty if the option takes a text or a number
};

[[nodiscard]] std::span<const option_description> describe_options();
/// Returns the line of an option, which must exist.
[[nodiscard]] const option_description& describe_option(std::string_view variable);

/// Returns the words as a list for a sentence: "a, b and c" if `last` is "and".
[[nodiscard]] std::string listed(std::span<const std::string_view> words, std::string_view last);

/// Reads a size: decimal digits, or 0x and hexadecimal digits, with an optional k, M, G or T in either case (powers of
/// 1024). Throws HPE_ERROR_INVALID_ARGUMENT for any other text.
[[nodiscard]] std::uint64_t parse_size(const std::string& text);

}  // namespace hpe
