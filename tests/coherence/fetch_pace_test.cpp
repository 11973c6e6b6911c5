#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/coherence/use_cycle.h"

namespace hpe::coherence {
namespace {

/// A cycle over arrays of 100 bytes, each of which one step of the period uses. Some of the arrays fit into the
/// device's memory. As in class fetcher, missing arrays are fetched ahead, in the order of their uses, in place of the
/// array whose next use is furthest away. The link brings in an array in two steps.
class cycle {
 public:
  cycle(std::size_t arrays, std::size_t fit, bool has_pace) : has_pace_(has_pace), there_(arrays, false) {
    std::fill_n(there_.begin(), fit, true);
  }

  /// Runs a period; returns for how many steps the work waited for data.
  std::size_t run() {
    std::size_t waits = 0;
    for (std::size_t n = 0; n < there_.size(); ++n) {
      const std::size_t array = step_ % there_.size();
      for (; !there_[array] || is_coming(array); ++waits) pass_time();
      std::erase(waiting_, array);
      ++step_;
      pass_time();
    }
    return waits;
  }
  [[nodiscard]] std::size_t fetched() const { return fetched_; }

 private:
  static constexpr std::size_t window = 2, at_pace = 8, bytes = 100, steps_of_a_copy = 2;

  [[nodiscard]] std::size_t steps_until(std::size_t array) const {
    return (array + there_.size() - step_ % there_.size()) % there_.size();
  }
  [[nodiscard]] bool is_coming(std::size_t array) const { return std::ranges::find(coming_, array) != coming_.end(); }
  void pass_time() {
    if (!coming_.empty() && ++copied_ >= steps_of_a_copy) {
      coming_.pop_front();
      copied_ = 0;
    }
    pace_.advance(step_, there_.size(), at_pace * bytes);
    while (has_room() && fetch()) {
    }
  }
  [[nodiscard]] bool has_room() const {
    return waiting_.size() < window || (has_pace_ && pace_.credit() > 0 && waiting_.size() < at_pace);
  }
  bool fetch() {
    std::size_t next = 0;
    while (next < there_.size() && there_[(step_ + next) % there_.size()]) ++next;
    if (next == there_.size()) return false;
    std::size_t furthest = 0;
    for (std::size_t a = 0; a < there_.size(); ++a)
      if (there_[a] && !is_coming(a)) furthest = std::max(furthest, steps_until(a));
    if (furthest <= next) return false;
    there_[(step_ + furthest) % there_.size()] = false;
    const std::size_t array = (step_ + next) % there_.size();
    there_[array] = true;
    coming_.push_back(array);
    waiting_.push_back(array);
    pace_.add(bytes, window * bytes);
    ++fetched_;
    return true;
  }

  const bool has_pace_;
  fetch_pace pace_;
  std::vector<bool> there_;
  std::deque<std::size_t> coming_;    // on the link
  std::vector<std::size_t> waiting_;  // fetched, and not used yet
  std::size_t step_ = 0;
  std::size_t copied_ = 0;
  std::size_t fetched_ = 0;
};

TEST(fetch_pace, missing_data_becomes_evenly_distributed_over_the_steps) {
  // 60 of 96 arrays fit. The link could bring in 48 in a period, but at first, one part of the period needs all 36.
  cycle without(96, 60, false), with(96, 60, true);
  for (int n = 0; n < 30; ++n) {
    without.run();
    with.run();
  }
  const std::size_t before = with.fetched();
  EXPECT_GT(without.run(), 20U);
  EXPECT_LE(with.run(), 10U);
  EXPECT_LE(with.fetched() - before, 36U + 6U);
}

TEST(fetch_pace, the_credit_grows_with_the_steps_of_the_next_period) {
  fetch_pace pace;
  pace.advance(100, 10, 1000);
  pace.add(500, 200);
  pace.advance(109, 10, 1000);
  EXPECT_EQ(pace.credit(), 0U) << "the pace of the first period is not known";
  pace.advance(110, 10, 1000);
  EXPECT_EQ(pace.credit(), 0U) << "200 bytes are owed";
  pace.advance(120, 10, 1000);
  EXPECT_EQ(pace.credit(), 250U) << "0.9 times 500 bytes in a period";
  pace.advance(125, 10, 1000);
  EXPECT_EQ(pace.credit(), 250U) << "nothing came in";
}

TEST(fetch_pace, the_credit_is_limited_and_ends_with_the_cycle) {
  fetch_pace pace;
  pace.advance(0, 10, 100);
  for (std::uint64_t step = 1; step <= 20; ++step) {
    pace.add(step <= 10 ? 50 : 45, 0);
    pace.advance(step, 10, 100);
  }
  EXPECT_LE(pace.credit(), 45U) << "each step brings in what the pace allows";
  pace.advance(29, 10, 100);
  EXPECT_EQ(pace.credit(), 100U);
  pace.advance(30, 0, 100);
  EXPECT_EQ(pace.credit(), 0U);
  pace.advance(5, 10, 100);
  EXPECT_EQ(pace.credit(), 0U) << "fewer steps: another cycle";
}

}  // namespace
}  // namespace hpe::coherence
