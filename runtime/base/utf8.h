#pragma once

/// Text that other programs wrote, in UTF-8.

#include <cstddef>
#include <string>
#include <string_view>

namespace hpe {

/// Returns the number of bytes of the first character; 0 if the text does not begin with a valid character of UTF-8.
[[nodiscard]] std::size_t first_character_length(std::string_view text) noexcept;

/// Returns the text as one line for a terminal: U+FFFD in place of each byte that is not UTF-8, and a blank in place of
/// each control character.
[[nodiscard]] std::string one_line_of(std::string_view text);

/// Returns the first characters of valid UTF-8, at most `most`.
[[nodiscard]] std::string_view first_characters(std::string_view text, std::size_t most) noexcept;

}  // namespace hpe
