#include "runtime/base/foreign_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpe {

namespace {

// Returns the number of bytes of the first character; 0 if the text does not begin with a valid character of UTF-8.
std::size_t first_character_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0), second = byte(1);
  if (text.empty() || (first >= 0x80 && first < 0xc2) || first > 0xf4) return 0;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and code points above U+10FFFF.
  const bool beyond = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return beyond ? 0 : length;
}

}  // namespace

std::string json_text(std::string_view s) {
  std::string result = "\"";
  while (!s.empty()) {
    const std::size_t length = first_character_length(s);
    const char c = s.front();
    if (length == 0) {
      result += "\ufffd";
    } else if (static_cast<unsigned char>(c) < ' ') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += s.substr(0, length);
    }
    s.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result + '"';
}

std::string one_line_of(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = first_character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool is_control = (length == 1 && (text[0] < ' ' || text[0] == '\x7f')) ||
                            (length == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0);
    result += length == 0 ? "\ufffd" : is_control ? " " : character;
    text.remove_prefix(character.size());
  }
  return result;
}

std::string_view first_characters(std::string_view text, std::size_t most) noexcept {
  std::size_t end = 0;
  for (; most > 0 && end < text.size(); --most)
    end += std::max<std::size_t>(first_character_length(text.substr(end)), 1);
  return text.substr(0, end);
}

}  // namespace hpe
