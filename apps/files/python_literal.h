#pragma once

/// Python's literals, in which the headers of .npy files are written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpe::files {

/// A string, a number, a word as in True, or a list, tuple or dictionary of literals.
struct python_literal {
  enum class kind { text, number, word, list, tuple, dictionary };

  kind is = kind::word;
  std::string text;                   ///< text of a string, a number or a word
  std::vector<python_literal> parts;  ///< elements; of a dictionary: key, value, key, value, ...
  std::string_view source;            ///< the literal as it was written, within the parsed text

  /// Returns the value of the string key `key`; null if the dictionary lacks this key.
  [[nodiscard]] const python_literal* find(std::string_view key) const;

  /// Returns the elements of a tuple or list of non-negative whole numbers; nullopt if it has other elements.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> whole_numbers() const;
};

/// Parses a text that consists of one literal, with space around it. Returns nullopt for any other text, and if
/// literals are nested more than 16 deep.
[[nodiscard]] std::optional<python_literal> parse_python(std::string_view text);

}  // namespace hpe::files
