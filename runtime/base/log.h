#pragma once

/// Diagnostics on standard error. The level is warn until set_log_level is called with the level that HPE_LOG names.
/// Each line is written by one write(2), so lines of several threads and processes do not mix.

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "runtime/base/choices.h"

namespace hpe {

void set_log_level(log_level level) noexcept;
[[nodiscard]] log_level current_log_level() noexcept;
[[nodiscard]] bool log_enabled(log_level level) noexcept;

/// Writes "hpe: text\n" if the level is enabled. Not async-signal-safe.
void write_log(log_level level, std::string_view text);

/// Formats and writes a line if the level is enabled. Drops the line if memory is short.
template <class... Arguments>
void log(log_level level, fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  if (!log_enabled(level)) return;
  try {
    write_log(level, fmt::format(format, std::forward<Arguments>(arguments)...));
  } catch (const std::bad_alloc&) {
  }
}

/// Builds a line without allocation, locks or locale, for signal handlers. Text beyond the buffer is dropped.
class handler_line {
 public:
  handler_line& text(const char* s) noexcept;
  handler_line& hex(std::uint64_t value) noexcept;
  handler_line& decimal(std::uint64_t value) noexcept;
  /// Writes the line and a newline, regardless of the level, and clears the line.
  void write() noexcept;

 private:
  char buffer_[480];
  std::size_t used_ = 0;
};

}  // namespace hpe
