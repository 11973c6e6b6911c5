#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

/// Converts CUDA's handles of memory and events to text for a command line, with two hexadecimal digits for each byte.

template <class Handle>
std::string to_text(const Handle& handle) {
  std::string text;
  for (const char each : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(each));
    text += digits;
  }
  return text;
}

/// Converts text to a handle; if the text is too short, the remaining bytes are 0.
template <class Handle>
Handle from_text(const std::string& text) {
  Handle handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved && 2 * i + 2 <= text.size(); ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}
