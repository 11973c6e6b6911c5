#include "apps/command_line/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <utility>
#include <vector>

#include "apps/command_line/report.h"
#include "hpe/hpe.hpp"

namespace hpe::command_line {

namespace {

constexpr double between_lines = 5, between_changes = 0.1;  // seconds

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

progress::place progress::standard_error() { return {.terminal = ::isatty(STDERR_FILENO) == 1}; }

progress::progress(std::string unit, double total, bool quiet, place where)
    : unit_(std::move(unit)), total_(total), quiet_(quiet), where_(std::move(where)), begin_(where_.now()) {}

progress::~progress() {
  if (open_) std::fputs("\n", where_.stream);
}

double progress::seconds() const { return std::chrono::duration<double>(where_.now() - begin_).count(); }

void progress::at(double done, const std::string& what) {
  if (quiet_ || ended_) return;
  const double now = seconds();
  const bool last = ended_ = done >= total_;
  if (last && told_ == 0 && now < between_lines) return;  // the work ended before the first line was due
  if (!last && now - told_ < (where_.terminal ? between_changes : between_lines)) return;
  told_ = now;
  if (where_.terminal) {
    // Moves the cursor to the start of the line and clears the line, because the previous text may be longer.
    fmt::print(where_.stream, "\r\033[K{}{}", line(done, what), last ? "\n" : "");
    std::fflush(where_.stream);
    open_ = !last;
  } else {
    fmt::print(where_.stream, "{}\n", line(done, what));
  }
}

std::string progress::line(double done, const std::string& what) const {
  const double elapsed = seconds();
  const double rate = elapsed > 0 ? done / elapsed : 0;
  const std::string part = what.empty() ? "" : ", " + what;
  const std::string count = fmt::format("{:.0f} of {:.0f} {}s", std::floor(done), total_, unit_);
  if (done >= total_) return fmt::format("{} in {}", count, duration(elapsed));
  std::string text = fmt::format("{}{}, {:.0f} %", count, part, 100 * done / total_);
  if (rate > 0) {
    text +=
        rate >= 1 ? fmt::format(", {:.1f} {}s/s", rate, unit_) : fmt::format(", {} a {}", duration(1 / rate), unit_);
    text += fmt::format(", {} left", duration((total_ - done) / rate));
  }
  return text;
}

double median_seconds(std::int64_t repeats, bool quiet, const std::function<void()>& run,
                      const std::function<void()>& prepare) {
  std::vector<double> times;
  progress shown("run", static_cast<double>(repeats), quiet);
  for (std::int64_t i = 0; i <= repeats; ++i) {
    prepare();
    synchronize();
    const auto begin = std::chrono::steady_clock::now();
    run();
    synchronize();
    if (i > 0) times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    shown.at(static_cast<double>(i));
  }
  return median(std::move(times));
}

}  // namespace hpe::command_line
