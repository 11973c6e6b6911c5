#pragma once

/// The table of all options that a user can set. A new option is one line in options.def; `hpe help options`, the
/// environment and the error messages follow from it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hpe {

/// The value of every option. Sizes are bytes, times microseconds.
struct options {
#define HPE_OPTION_TEXT(field, variable, initial, sentence) std::string field = initial;
#define HPE_OPTION_SIZE(field, variable, initial, sentence) std::uint64_t field = initial;
#include "runtime/base/options.def"
#undef HPE_OPTION_TEXT
#undef HPE_OPTION_SIZE

  /// The defaults, overridden by the environment. Throws HPE_ERROR_INITIALIZATION for an invalid value, with the
  /// variable and the valid values.
  static options from_environment();
};

/// One message for each environment variable whose name is almost that of an option; it names both. Other variables
/// that begin with HPE_ are assumed to belong to the program.
[[nodiscard]] std::vector<std::string> misspelt_options();

/// A line of options.def, for help texts.
struct option_description {
  std::string variable;
  std::string initial;
  std::string sentence;
};

[[nodiscard]] std::span<const option_description> describe_options();

/// Reads a size: digits with an optional k, M, G or T (powers of 1024). Throws HPE_ERROR_INVALID_ARGUMENT.
[[nodiscard]] std::uint64_t parse_size(const std::string& text);

}  // namespace hpe
