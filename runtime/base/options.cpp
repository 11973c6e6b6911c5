#include "runtime/base/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

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

void read(const char* variable, std::string& value) {
  if (const char* text = std::getenv(variable)) value = text;  // NOLINT(concurrency-mt-unsafe): read once at start
}

void read(const char* variable, std::uint64_t& value) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == '\0') return;
  try {
    value = parse_size(text);
  } catch (const error& e) {
    HPE_THROW(HPE_ERROR_INITIALIZATION, "{}: {}", variable, e.what());
  }
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

options options::from_environment() {
  options result;
#define HPE_OPTION_TEXT(field, variable, initial, sentence) read(variable, result.field);
#define HPE_OPTION_SIZE(field, variable, initial, sentence) read(variable, result.field);
#include "runtime/base/options.def"
#undef HPE_OPTION_TEXT
#undef HPE_OPTION_SIZE
  return result;
}

std::span<const option_description> describe_options() {
  // Never destroyed, because a program may start hpe as it exits.
  static const auto& table = *new const std::vector<option_description>([] {
    const options initial;
    std::vector<option_description> lines;
    std::string group;
#define HPE_OPTION_GROUP(title) group = title;
#define HPE_OPTION_TEXT(field, variable, unused, sentence) \
  lines.push_back({variable, show(initial.field), sentence, group});
#define HPE_OPTION_SIZE(field, variable, unused, sentence) \
  lines.push_back({variable, show(initial.field), sentence, group});
#include "runtime/base/options.def"
#undef HPE_OPTION_TEXT
#undef HPE_OPTION_SIZE
    return lines;
  }());
  return table;
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
