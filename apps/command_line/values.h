#pragma once

/// Setters for common kinds of values. Each setter keeps a reference to the variable that it sets.

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "apps/command_line/command_options.h"

namespace hpe::command_line {

inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

/// Parses a whole number from `least` to `most`, written as 1000, 2^20 or 64M (k, M, G: powers of 1024). Throws
/// bad_input, which names the option; for a positional argument without a limit, the message also says how sizes are
/// written.
[[nodiscard]] std::int64_t whole_number(const std::string& name, const std::string& text, std::int64_t least = 0,
                                        std::int64_t most = no_limit);

/// Whether a word is written as a size, as in 2^20, 64M or 4096x4096, and not as the name of a file.
[[nodiscard]] bool is_size(const std::string& word);

/// Parses a finite number. Throws bad_input.
[[nodiscard]] double real_number(const std::string& name, const std::string& text);

[[nodiscard]] setter to_text(std::string& place);
[[nodiscard]] setter to_flag(bool& place);
[[nodiscard]] setter to_positive(double& place);
[[nodiscard]] setter to_not_negative(double& place);

/// Returns a setter for an argument that is a size or a file. It passes a word that is written as a size to the setter
/// `size`, and stores any other word in `file`. It also passes a number that is not a size, such as -5, 1.5 or 64MB, to
/// `size`, which refuses the number, unless a file with this name exists.
[[nodiscard]] setter to_size_or_file(setter size, std::string& file);

template <std::integral Number>
[[nodiscard]] setter to_whole(Number& place, std::int64_t least = 0, std::int64_t most = no_limit) {
  return [&place, least, most](const std::string& name, const std::string& text) {
    place = static_cast<Number>(whole_number(name, text, least, most));
  };
}

/// Returns the index of `text` in `words`. If `text` is not among them, throws bad_input, which lists the words.
[[nodiscard]] std::size_t place_among(const std::string& name, const std::string& text,
                                      const std::vector<std::string>& words);

/// Returns a setter that accepts one of the given words.
[[nodiscard]] setter to_word(std::string& place, std::vector<std::string> words);

/// Returns a setter that accepts the name of one of the given values.
template <class Value>
[[nodiscard]] setter to_one_of(Value& place, std::vector<std::pair<std::string, Value>> known) {
  return [&place, known = std::move(known)](const std::string& name, const std::string& text) {
    std::vector<std::string> words;
    for (const auto& row : known) words.push_back(row.first);
    place = known[place_among(name, text, words)].second;
  };
}

}  // namespace hpe::command_line
