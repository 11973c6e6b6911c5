#include "runtime/spread/move_price.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace hpe::spread {

namespace {

// The limits of plausible prices: seconds to map or unmap a range, and seconds to copy a byte.
constexpr double least_range = 1e-6, most_range = 0.1, least_byte = 1e-13, most_byte = 1e-8;

}  // namespace

void move_price::took(const move_work& w, double seconds) {
  constexpr double most =
      8;  // limits the correction, because a move that takes much longer than predicted is a stall of the machine
  const double predicted = this->seconds(w);
  if (predicted <= 0 || seconds <= 0) return;
  const double ratio = std::clamp(seconds / predicted, 1 / most, most);
  // The correction of each price is proportional to its fraction of the predicted time, so that a few moves of
  // different sizes determine both prices.
  const double weight = std::exchange(is_measured_, true) ? 0.5 : 1;
  const double of_ranges = w.ranges * range_seconds_ / predicted;
  range_seconds_ = std::clamp(range_seconds_ * std::pow(ratio, weight * of_ranges), least_range, most_range);
  byte_seconds_ = std::clamp(byte_seconds_ * std::pow(ratio, weight * (1 - of_ranges)), least_byte, most_byte);
}

bool move_price::is_near(const move_price& other) const {
  const auto near = [](double a, double b) { return std::abs(a - b) < 0.1 * b; };
  return near(range_seconds_, other.range_seconds_) && near(byte_seconds_, other.byte_seconds_);
}

std::string move_price::as_text() const { return fmt::format("{:.6g} {:.6g}", range_seconds_, byte_seconds_); }

std::optional<move_price> move_price::from_text(const std::string& text) {
  std::istringstream words(text);
  move_price found(0, 0);
  std::string more;
  if (!(words >> found.range_seconds_ >> found.byte_seconds_) || words >> more) return std::nullopt;
  const auto is_in = [](double value, double least, double most) { return value >= least && value <= most; };
  if (!is_in(found.range_seconds_, least_range, most_range) || !is_in(found.byte_seconds_, least_byte, most_byte))
    return std::nullopt;
  found.is_measured_ = true;
  return found;
}

}  // namespace hpe::spread
