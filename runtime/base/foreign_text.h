#pragma once

/// Text that other programs wrote, in UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace hpe {

/// Returns the text as one line for a terminal: U+FFFD in place of each byte that is not UTF-8, and a blank in place of
/// each control character.
[[nodiscard]] std::string one_line_of(std::string_view text);

/// Returns a text as a JSON string, with quotes.
[[nodiscard]] std::string json_text(std::string_view s);

/// Returns the first characters of valid UTF-8, at most `most`.
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t most) noexcept;

}  // namespace hpe
