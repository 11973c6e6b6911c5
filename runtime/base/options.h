#pragma once

/// The one table of what a user can set. A new option is one line in options.def; `hpe help options`, the environment
/// and the error messages follow from it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hpe {

/// Every option's value. Sizes are bytes, times microseconds.
struct options {
#define HPE_OPTION_TEXT(field, variable, initial, sentence) std::string field = initial;
#define HPE_OPTION_SIZE(field, variable, initial, sentence) std::uint64_t field = initial;
#include "runtime/base/options.def"
#undef HPE_OPTION_TEXT
#undef HPE_OPTION_SIZE

  /// The defaults, changed by what the environment says. Throws HPE_ERROR_INITIALIZATION for a value that cannot be
  /// meant, naming the variable and what is possible.
  static options from_environment();
};

/// For each variable of the environment that is almost the name of an option, a sentence that names both. Other
/// variables that begin with HPE_ belong to the program.
[[nodiscard]] std::vector<std::string> misspelt_options();

/// A line of the table, for help texts.
struct option_description {
  std::string variable;
  std::string initial;
  std::string sentence;
};

[[nodiscard]] std::span<const option_description> describe_options();

/// Reads a size: digits with an optional k, M, G or T (powers of 1024). Throws HPE_ERROR_INVALID_ARGUMENT.
[[nodiscard]] std::uint64_t parse_size(const std::string& text);

}  // namespace hpe
