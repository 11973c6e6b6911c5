#include "runtime/base/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace hpe {

namespace {

std::atomic<log_level> chosen_level{log_level::warn};

// Errors are ignored, because there is no other place to report them. The system call, unlike write(), is no
// cancellation point.
void write_all(const char* data, std::size_t size) noexcept {
  while (size > 0) {
    const ssize_t written = ::syscall(SYS_write, STDERR_FILENO, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void set_log_level(log_level level) noexcept { chosen_level.store(level, std::memory_order_relaxed); }

log_level current_log_level() noexcept { return chosen_level.load(std::memory_order_relaxed); }

bool log_enabled(log_level level) noexcept { return level <= current_log_level(); }

void write_log(log_level level, std::string_view text) {
  if (!log_enabled(level)) return;
  const int saved = errno;
  const std::string line = fmt::format("hpe: {}\n", text);
  write_all(line.data(), line.size());
  errno = saved;
}

handler_line& handler_line::text(const char* s) noexcept {
  while (*s != '\0' && used_ < sizeof buffer_ - 1) buffer_[used_++] = *s++;
  return *this;
}

handler_line& handler_line::hex(std::uint64_t value) noexcept {
  char digits[17];
  unsigned n = sizeof digits;
  digits[--n] = '\0';
  do {
    digits[--n] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  return text("0x").text(digits + n);
}

handler_line& handler_line::decimal(std::uint64_t value) noexcept {
  char digits[21];
  unsigned n = sizeof digits;
  digits[--n] = '\0';
  do {
    digits[--n] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return text(digits + n);
}

void handler_line::write() noexcept {
  const int saved = errno;
  buffer_[used_++] = '\n';
  write_all(buffer_, used_);
  used_ = 0;
  errno = saved;
}

}  // namespace hpe
