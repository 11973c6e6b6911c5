#pragma once

/// The price of moving arrays between devices. Units: bytes and seconds.

#include <optional>
#include <string>

namespace hpe::spread {

/// The work of a move of an array to other homes (launch.h).
struct move_work {
  /// The number of ranges of memory that the move maps or unmaps. A range with one old home that loses bytes counts
  /// once. Each part of the range with one new home counts twice, because the move maps the part first in temporary
  /// memory.
  double ranges = 0;
  double bytes = 0;  // the number of bytes whose home changes
  [[nodiscard]] bool none() const { return ranges == 0 && bytes == 0; }
  move_work& operator+=(const move_work& other) {
    ranges += other.ranges;
    bytes += other.bytes;
    return *this;
  }
};

/// Predicts how long moves take, and corrects the prediction after each measured move.
class move_price {
 public:
  constexpr move_price(double range_seconds, double byte_seconds)
      : range_seconds_(range_seconds), byte_seconds_(byte_seconds) {}

  [[nodiscard]] double seconds(const move_work& w) const { return w.ranges * range_seconds_ + w.bytes * byte_seconds_; }
  /// Call this when a move has taken `seconds`. Multiplies each price by r^(w s): r is the measured time divided by the
  /// predicted time (from 1/8 to 8), s is the price's share of the predicted time, w is 1 at the first measured move
  /// (if the price is not from from_text) and 1/2 later. Keeps both prices within plausible limits.
  void took(const move_work& w, double seconds);

  /// Returns whether the price of a range and the price of a byte both differ from `other` by less than 10 %.
  [[nodiscard]] bool is_near(const move_price& other) const;
  /// Returns the price as one line for cache_file.
  [[nodiscard]] std::string as_text() const;
  /// Returns the price in a text from as_text(). Empty if the text has another format, or if the times are implausible.
  [[nodiscard]] static std::optional<move_price> from_text(const std::string& text);

 private:
  double range_seconds_, byte_seconds_;
  bool is_measured_ = false;
};

}  // namespace hpe::spread
