#include "runtime/base/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "runtime/base/error.h"

namespace hpe {

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t value = 0;
  const char* first = text.data();
  const char* last = first + text.size();
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) first += 2;
  const auto [end, failure] = std::from_chars(first, last, value, base);
  unsigned shift = 0;
  const char* rest = end;
  if (failure == std::errc{} && rest != last) {
    switch (*rest) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      case 't':
      case 'T': shift = 40; break;
      default: break;
    }
    if (shift != 0) ++rest;
  }
  HPE_REQUIRE(failure == std::errc{} && rest == last && value <= (std::numeric_limits<std::uint64_t>::max() >> shift),
              HPE_ERROR_INVALID_ARGUMENT, "\"{}\" is not a size; a size is a number with an optional k, M, G or T",
              text);
  return value << shift;
}

namespace {

// The words for each choice, in the order of the enumerators.
#define HPE_VALUE(enumerator, word) word
#define HPE_VALUES(...) __VA_ARGS__
#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence) \
  constexpr std::string_view words_of_##field[] = {HPE_VALUES values};
#include "runtime/base/options.def"
#undef HPE_VALUE
#undef HPE_VALUES

constexpr std::string_view words_of_switch[] = {"on", "off"};
constexpr std::string_view accepted_by_switch[] = {"on", "off", "1", "0"};

// The value of a variable; nullptr if it is not set.
const char* text_of(const char* variable) {
  return std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): hpe changes the environment only as it starts
}

void read(const char* variable, std::string& value) {
  if (const char* text = text_of(variable)) value = text;
}

void read(const char* variable, std::uint64_t& value) {
  const char* text = text_of(variable);
  if (text == nullptr || *text == '\0') return;
  try {
    value = parse_size(text);
  } catch (const error& e) {
    HPE_THROW(HPE_ERROR_INITIALIZATION, "{}: {}", variable, e.what());
  }
}

// Returns the position of the variable's value among the words, or `initial` if the variable is not set. Throws
// HPE_ERROR_INITIALIZATION if the value is not one of the words.
std::size_t place_among(std::span<const std::string_view> words, const char* variable, std::size_t initial) {
  const char* const text = text_of(variable);
  if (text == nullptr) return initial;
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  HPE_REQUIRE(words.size() != 2, HPE_ERROR_INITIALIZATION, "{}=\"{}\" is neither {} nor {}", variable, text, words[0],
              words[1]);
  HPE_THROW(HPE_ERROR_INITIALIZATION, "{}=\"{}\" is none of {}", variable, text, listed(words, "and"));
}

void read(const char* variable, bool& value) {
  value = place_among(accepted_by_switch, variable, value ? 0 : 1) % 2 == 0;
}

// Reads all options. For each invalid value, calls `wrong` in the catch block of the error.
template <class Wrong>
options read_all(Wrong wrong) {
  options result;
  const auto attempt = [&](auto read_one) {
    try {
      read_one();
    } catch (const error&) {
      wrong();
    }
  };
#define HPE_OPTION_TEXT(field, variable, initial, sentence) attempt([&] { read(variable, result.field); });
#define HPE_OPTION_SIZE(field, variable, initial, sentence) attempt([&] { read(variable, result.field); });
#define HPE_OPTION_SWITCH(field, variable, initial, sentence) attempt([&] { read(variable, result.field); });
#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence)                                            \
  attempt([&] {                                                                                                        \
    result.field = static_cast<type>(place_among(words_of_##field, variable, static_cast<std::size_t>(result.field))); \
  });
#include "runtime/base/options.def"
  return result;
}

std::string show(const std::string& value) { return value; }

std::string show(std::uint64_t value) {
  static constexpr const char* suffix[] = {"", "k", "M", "G", "T"};
  unsigned power = 0;
  while (power < 4 && value != 0 && value % 1024 == 0) {
    value /= 1024;
    ++power;
  }
  return fmt::format("{}{}", value, suffix[power]);
}

/// Whether one word becomes the other by inserting, removing or replacing at most `changes` letters.
bool alike(std::string_view one, std::string_view other, int changes) {
  while (!one.empty() && !other.empty() && one.front() == other.front()) {
    one.remove_prefix(1);
    other.remove_prefix(1);
  }
  if (one.empty() && other.empty()) return true;
  if (changes == 0) return false;
  return (!one.empty() && alike(one.substr(1), other, changes - 1)) ||
         (!other.empty() && alike(one, other.substr(1), changes - 1)) ||
         (!one.empty() && !other.empty() && alike(one.substr(1), other.substr(1), changes - 1));
}

}  // namespace

#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence) \
  std::string_view word_of(type value) noexcept { return words_of_##field[static_cast<std::size_t>(value)]; }
#include "runtime/base/options.def"

options options::from_environment() {
  return read_all([] { throw; });
}

options options::valid_in_environment() {
  return read_all([] {});
}

std::span<const option_description> describe_options() {
  // The table is never destroyed, because a program may start hpe while it exits.
  static const auto& table = *new const std::vector<option_description>([] {
    const options initially;
    std::vector<option_description> lines;
    std::string group;
#define HPE_OPTION_GROUP(title) group = title;
#define HPE_OPTION_TEXT(field, variable, initial, sentence) \
  lines.push_back({variable, show(initially.field), sentence, group, {}});
#define HPE_OPTION_SIZE(field, variable, initial, sentence) \
  lines.push_back({variable, show(initially.field), sentence, group, {}});
#define HPE_OPTION_SWITCH(field, variable, initial, sentence) \
  lines.push_back({variable,                                  \
                   initially.field ? "on" : "off",            \
                   sentence,                                  \
                   group,                                     \
                   {std::begin(words_of_switch), std::end(words_of_switch)}});
#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence) \
  lines.push_back({variable,                                                \
                   std::string(word_of(initially.field)),                   \
                   sentence,                                                \
                   group,                                                   \
                   {std::begin(words_of_##field), std::end(words_of_##field)}});
#include "runtime/base/options.def"
    return lines;
  }());
  return table;
}

const option_description& describe_option(std::string_view variable) {
  const std::span<const option_description> all = describe_options();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.variable == variable; });
  HPE_INVARIANT(found != all.end());
  return *found;
}

std::string listed(std::span<const std::string_view> words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) text += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    text += words[i];
  }
  return text;
}

std::vector<std::string> misspelt_options() {
  const std::span<const option_description> known = describe_options();
  std::vector<std::string> sentences;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("HPE_")) continue;
    for (const int changes : {0, 1, 2}) {
      const auto near = std::find_if(known.begin(), known.end(),
                                     [&](const auto& option) { return alike(name, option.variable, changes); });
      if (near == known.end()) continue;
      if (changes != 0) sentences.push_back(fmt::format("{} is not an option; did you mean {}?", name, near->variable));
      break;
    }
  }
  return sentences;
}

}  // namespace hpe
