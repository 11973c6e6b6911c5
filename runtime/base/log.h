#pragma once

/// Diagnostics on standard error. The level comes from HPE_LOG once set_log_level was called; before that it is
/// warn. One line is one write(2), so lines of several threads and processes do not mix.

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

namespace hpe {

enum class log_level : std::uint8_t { silent, error, warn, info, debug };

/// The level that HPE_LOG names. Throws HPE_ERROR_INITIALIZATION for any other text.
[[nodiscard]] log_level parse_log_level(std::string_view name);

void set_log_level(log_level level) noexcept;
[[nodiscard]] bool log_enabled(log_level level) noexcept;

/// Writes "hpe: text\n" if the level is enabled. Not for signal handlers.
void write_log(log_level level, std::string_view text);

/// What memory is too short for is not written.
template <class... Arguments>
void log(log_level level, fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  if (!log_enabled(level)) return;
  try {
    write_log(level, fmt::format(format, std::forward<Arguments>(arguments)...));
  } catch (const std::bad_alloc&) {
  }
}

/// A line put together without allocation, locks or locale, for signal handlers. What does not fit is cut.
class handler_line {
 public:
  handler_line& text(const char* s) noexcept;
  handler_line& hex(std::uint64_t value) noexcept;
  handler_line& decimal(std::uint64_t value) noexcept;
  /// Writes it, with a newline, whatever the level.
  void write() noexcept;

 private:
  char buffer_[480];
  std::size_t used_ = 0;
};

}  // namespace hpe
