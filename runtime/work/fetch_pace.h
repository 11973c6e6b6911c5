#pragma once

/// Spreads the data that is fetched ahead evenly over the steps of a cycle (use_cycle). At first, the data that is
/// missing in a period is often needed in one part of the period, because hpe evicts the data whose next use is
/// furthest away, which is the data of the latest steps. In the other parts, the link would be idle. With a pace, data
/// comes in all the time, and takes the place of data of evenly distributed steps. So after some periods, the data that
/// is missing in a period is needed in evenly distributed steps. Pure bookkeeping; not thread-safe.

#include <algorithm>
#include <cstdint>

namespace hpe::work {

class fetch_pace {
 public:
  /// `steps`: the number of steps so far. `period`: the number of steps in the cycle; 0 if no cycle is known. `most`:
  /// the largest credit.
  void advance(std::uint64_t steps, std::uint64_t period, std::uint64_t most) noexcept {
    if (period == 0 || steps < now_) {
      *this = {};
      now_ = begin_ = steps;
      return;
    }
    credit_ = std::min(credit_ + per_step_ * static_cast<double>(steps - now_), static_cast<double>(most));
    now_ = steps;
    if (now_ - begin_ < period) return;
    per_step_ = share * static_cast<double>(bytes_) / static_cast<double>(now_ - begin_);
    begin_ = now_;
    bytes_ = 0;
  }

  /// Records data that has come in. `most_owed`: the credit never falls below the negative of this value.
  void add(std::uint64_t bytes, std::uint64_t most_owed) noexcept {
    bytes_ += bytes;
    credit_ = std::max(credit_ - static_cast<double>(bytes), -static_cast<double>(most_owed));
  }

  /// How many bytes more could have come in at this pace; 0 if more have come in.
  [[nodiscard]] std::uint64_t credit() const noexcept { return static_cast<std::uint64_t>(std::max(credit_, 0.0)); }

 private:
  // If as many bytes came in at this pace as in the latest period, the amount of data that waits for its use would
  // never decrease again.
  static constexpr double share = 0.9;

  std::uint64_t now_ = 0;
  std::uint64_t begin_ = 0;  // the step in which the latest period began
  std::uint64_t bytes_ = 0;  // what has come in since then
  double per_step_ = 0;      // the pace, in bytes
  double credit_ = 0;
};

}  // namespace hpe::work
