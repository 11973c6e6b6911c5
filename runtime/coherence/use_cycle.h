#pragma once

/// Predicts which memory the work of a device uses next, if the work nearly repeats itself, as training steps, decoding
/// and solvers do. The memory that one piece of work uses is a *step*. If many of the latest steps came before at the
/// same distance, this distance is the period of a cycle, and the object predicts that memory is used again one period
/// after its uses in the latest period. The steps need not repeat exactly: allocators of programs place some arrays
/// elsewhere in each period. Predictions are compared with the uses that follow. If too few come true, the object knows
/// no cycle. Pure bookkeeping with bounded memory; not thread-safe.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/coherence/access_order.h"

namespace hpe::coherence {

class use_cycle {
 public:
  /// A period has at most so many steps, and its steps have fewer uses than `most_uses`.
  static constexpr std::uint64_t most_steps = 32768;
  static constexpr std::uint64_t most_uses = 262144;

  /// Adds bytes of a region to the current step. The first call of use() or end_step() allocates memory, and so does
  /// the first use of a region whose number is larger than all before it. If that fails, nothing has changed.
  /// `reads`: whether the step needs the old contents of the bytes.
  void use(std::uint32_t region, byte_range bytes, bool reads = true);
  void end_step();

  /// The number of steps in the cycle; 0 if no cycle is known.
  [[nodiscard]] std::uint64_t period() const noexcept { return trust_ >= least_trust ? period_ : 0; }
  /// The number of steps so far.
  [[nodiscard]] std::uint64_t steps() const noexcept { return step_count_; }
  /// A range of bytes and its next use.
  struct next_use {
    byte_range bytes;
    std::uint64_t steps = 0;  ///< the number of steps until a step uses some of the bytes: 1 for the next step; 0: none
    std::uint64_t due = 0;    ///< for find_next_uses
  };
  /// Sets the steps until the next uses of ranges of a region. A use that is a little late counts as a use in the next
  /// step. The ranges must be in ascending order and disjoint. Only while a cycle is known. Takes a time in proportion
  /// to the region's uses in a period.
  void find_next_uses(std::uint32_t region, std::span<next_use> ranges) noexcept;

  struct predicted_use {
    std::uint32_t region = 0;
    byte_range bytes;
    bool reads = true;
    std::uint64_t steps = 0;  ///< as in next_use
  };
  /// Returns the first predicted use after those that pass() has passed, at most one period ahead. Returns nullopt if
  /// there is none, or if fewer than half of the latest predictions came true.
  [[nodiscard]] std::optional<predicted_use> upcoming() noexcept;
  void pass() noexcept { ++upcoming_; }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  static constexpr double least_trust = 1.0 / 10;
  static constexpr double trust_to_fetch = 1.0 / 2;

  struct region_use {
    std::uint32_t region = 0;
    byte_range bytes;
    bool reads = true;
    std::uint64_t step = 0;
    std::uint64_t next = none;  // the number of the region's next use
  };
  /// The numbers of uses of a region.
  struct region_uses {
    std::uint64_t first = none;  // no later than the first use in the latest period
    std::uint64_t ahead = none;  // no later than the first use that is expected again after the current step
    std::uint64_t last = none;
    std::uint64_t expected = 0;  // the step in which the region was expected to be used after its last use; 0: none
  };
  struct hashed_step {
    std::uint64_t hash = 0;     // of a step and the step before it
    std::uint64_t step = none;  // the latest such step
  };

  void allocate();
  void judge(const region_uses& of) noexcept;
  /// Moves `from` to the first use that is expected again in step `least` or later, and returns its number; none if the
  /// region has no such use. `last`: the last use of the region.
  std::uint64_t first_expected(std::uint64_t& from, std::uint64_t last, std::uint64_t least) const noexcept;
  void link(std::uint64_t number) noexcept;
  void choose_period();
  void set_period(std::uint64_t chosen) noexcept;

  // Rings, by the number of the use or of the step.
  std::vector<region_use> uses_;
  std::vector<std::uint32_t> distances_;  // from each of the latest steps to the same step before it; 0: none
  std::vector<std::uint32_t> sorted_;     // a copy of distances_
  std::vector<hashed_step> places_;       // by hash
  std::vector<region_uses> regions_;      // by number
  std::uint64_t step_count_ = 0;
  std::uint64_t use_count_ = 0;
  std::uint64_t hash_ = 0;           // of the current step
  std::uint64_t hash_before_ = 0;    // of the step before it
  std::uint64_t observed_from_ = 0;  // the period is chosen from later steps
  std::uint64_t next_choice_ = 0;    // the number of steps after which the period is chosen again
  std::uint64_t period_ = 0;
  std::uint64_t upcoming_ = 0;  // the number of the use whose repetition upcoming() returns next
  double trust_ = 0;            // the share of the latest predictions that came true
};

/// Spreads the data that is fetched ahead evenly over the steps of a cycle (use_cycle). At first, the data that is
/// missing in a period is often needed in one part of the period, because hpe evicts the data whose next use is
/// furthest away, which is the data of the latest steps. In the other parts, the link would be idle. With a pace, data
/// comes in all the time, and takes the place of data of evenly distributed steps. So after some periods, the data that
/// is missing in a period is needed in evenly distributed steps. Pure bookkeeping; not thread-safe.
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

}  // namespace hpe::coherence
