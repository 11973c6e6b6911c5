#include "apps/command_line/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "apps/command_line/command_options.h"

namespace hpe::command_line {

namespace {

constexpr int highest_power = 62;

std::optional<std::int64_t> plain_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Returns the power of two that a unit means, as a shift: 10 for k and K, 20 for M, 30 for G; 0 for other characters.
int shift_of(char unit) {
  switch (unit) {
    case 'k':
    case 'K': return 10;
    case 'M': return 20;
    case 'G': return 30;
    default: return 0;
  }
}

std::optional<std::int64_t> written_number(std::string_view text) {
  if (text.starts_with("2^")) {
    const auto power = plain_number(text.substr(2));
    if (!power || *power < 0 || *power > highest_power) return std::nullopt;
    return std::int64_t{1} << *power;
  }
  const int shift = text.empty() ? 0 : shift_of(text.back());
  if (shift == 0) return plain_number(text);
  const auto value = plain_number(text.substr(0, text.size() - 1));
  if (!value || *value < 0 || *value > std::int64_t{1} << (highest_power - shift)) return std::nullopt;
  return *value << shift;
}

}  // namespace

std::int64_t whole_number(const std::string& name, const std::string& text, std::int64_t least, std::int64_t most) {
  const auto value = written_number(text);
  if (!value || *value < least || *value > most)
    throw bad_input(name + " " + text + ": expected a whole number from " + std::to_string(least) +
                    (most == no_limit ? "" : " to " + std::to_string(most)) +
                    (name.starts_with("-") || most != no_limit ? "" : ", such as 1000, 2^20 or 64M"));
  return *value;
}

bool is_size(const std::string& word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789^kKMGx") == std::string::npos;
}

namespace {

/// Whether a word is a number, possibly with a sign, a decimal point, an exponent, and a unit after the number.
bool is_meant_as_number(const std::string& word) {
  static const std::regex number(R"([+-]?\d+(\.\d*)?([eE][+-]?\d+)?([kKmMgGtT]i?)?[bB]?)");
  return std::regex_match(word, number);
}

}  // namespace

double real_number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value))
    throw bad_input(name + ": \"" + text + "\" is not a number");
  return value;
}

setter to_text(std::string& place) {
  return [&place](const std::string&, const std::string& text) { place = text; };
}

setter to_size_or_file(setter size, std::string& file) {
  return [size = std::move(size), &file](const std::string& name, const std::string& word) {
    if (is_size(word) || (is_meant_as_number(word) && !std::filesystem::exists(word)))
      size(name, word);
    else
      file = word;
  };
}

setter to_flag(bool& place) {
  return [&place](const std::string&, const std::string&) { place = true; };
}

setter to_positive(double& place) {
  return [&place](const std::string& name, const std::string& text) {
    const double value = real_number(name, text);
    if (value <= 0) throw bad_input(name + " " + text + ": it must be more than 0");
    place = value;
  };
}

setter to_not_negative(double& place) {
  return [&place](const std::string& name, const std::string& text) {
    const double value = real_number(name, text);
    if (value < 0) throw bad_input(name + " " + text + ": it must not be negative");
    place = value;
  };
}

setter to_word(std::string& place, std::vector<std::string> words) {
  return [&place, words = std::move(words)](const std::string& name, const std::string& text) {
    place = words[place_among(name, text, words)];
  };
}

std::size_t place_among(const std::string& name, const std::string& text, const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  const std::string meant = nearest(text, words);
  throw bad_input(name + " " + text + ": the possible values are " + all +
                  (meant.empty() ? "" : ". Did you mean \"" + meant + "\"?"));
}

}  // namespace hpe::command_line
