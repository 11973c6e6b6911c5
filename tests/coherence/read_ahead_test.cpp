#include "runtime/coherence/read_ahead.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace hpe::coherence {
namespace {

/// A model of a host that reads blocks whose data is at first on the device. Fetches take no time; as in the runtime, a
/// marker block stays closed until it is touched.
class reader {
 public:
  reader(std::uint64_t blocks, std::uint64_t window) : blocks_(blocks) { ahead_.reset(blocks, window); }

  void read(std::uint64_t b) {
    if (open_[b]) return;
    ++faults;
    if (!here_[b]) {
      ++waits;
      fetch({b, b + 1});
      fetch(ahead_.touched(b));
    } else if (ahead_.is_marker(b)) {
      fetch(ahead_.touched(b));
    }
    open_[b] = true;
  }

  [[nodiscard]] std::uint64_t fetched() const {
    return static_cast<std::uint64_t>(std::count(here_.begin(), here_.end(), true));
  }
  /// Returns the number of consecutive blocks, beginning with b, whose data has arrived.
  [[nodiscard]] std::uint64_t ready_from(std::uint64_t b) const {
    std::uint64_t n = 0;
    while (b + n < blocks_ && here_[b + n]) ++n;
    return n;
  }

  std::uint64_t faults = 0;  // the number of times that the host entered the runtime
  std::uint64_t waits = 0;   // the number of these faults at which the data had not arrived
  std::uint64_t largest = 0;

 private:
  void fetch(block_run run) {
    ASSERT_LE(run.end, blocks_);
    ASSERT_LE(run.begin, run.end);
    std::uint64_t now = 0;
    for (std::uint64_t b = run.begin; b < run.end; ++b) {
      if (here_[b]) continue;
      here_[b] = true;
      ++now;
      if (!ahead_.is_marker(b)) open_[b] = true;
    }
    largest = std::max(largest, now);
  }

  std::uint64_t blocks_;
  read_ahead ahead_;
  std::vector<bool> here_ = std::vector<bool>(blocks_);
  std::vector<bool> open_ = std::vector<bool>(blocks_);
};

TEST(read_ahead, windows_double_and_end_with_the_region) {
  read_ahead ahead;
  ahead.reset(20, 8);
  EXPECT_TRUE(ahead.touched(0).empty());
  EXPECT_EQ(ahead.touched(1), (block_run{1, 4}));  // block 1, and two blocks after it
  EXPECT_TRUE(ahead.is_marker(2));
  EXPECT_EQ(ahead.touched(2), (block_run{4, 8}));
  EXPECT_FALSE(ahead.is_marker(2));
  EXPECT_TRUE(ahead.is_marker(4));
  EXPECT_EQ(ahead.touched(4), (block_run{8, 16}));
  EXPECT_EQ(ahead.touched(8), (block_run{16, 20}));
  EXPECT_TRUE(ahead.touched(16).empty());
  for (std::uint64_t b = 0; b <= 20; ++b) EXPECT_FALSE(ahead.is_marker(b));
}

TEST(read_ahead, a_sequential_walk_waits_at_its_start_only) {
  for (const std::uint64_t window : {1, 2, 3, 8, 16, 64}) {
    SCOPED_TRACE(window);
    constexpr std::uint64_t blocks = 500;
    reader host(blocks, window);
    for (std::uint64_t b = 0; b < blocks; ++b) {
      host.read(b);
      ASSERT_TRUE(!testing::Test::HasFatalFailure());
      // From the second touch on, at least one block beyond the block being read is always fetched.
      if (b >= 1 && b + 1 < blocks) {
        EXPECT_GE(host.ready_from(b + 1), 1u) << b;
      }
      if (b >= 4 * window && b + window < blocks) {
        EXPECT_GE(host.ready_from(b + 1), window) << b;
      }
    }
    EXPECT_EQ(host.fetched(), blocks);
    EXPECT_EQ(host.waits, 2u);
    EXPECT_LE(host.largest, window + 1);
    EXPECT_LE(host.faults, blocks / window + 12);
  }
}

TEST(read_ahead, a_walk_may_start_anywhere) {
  reader host(300, 16);
  for (std::uint64_t b = 100; b < 300; ++b) host.read(b);
  EXPECT_EQ(host.waits, 2u);
  EXPECT_EQ(host.fetched(), 200u);
}

TEST(read_ahead, backwards_and_random_readers_are_left_alone) {
  reader backwards(300, 16);
  for (std::uint64_t b = 300; b > 0; --b) backwards.read(b - 1);
  EXPECT_EQ(backwards.waits, 300u);
  EXPECT_EQ(backwards.largest, 1u);

  constexpr std::uint64_t blocks = 100000;
  reader anywhere(blocks, 16);
  std::mt19937 random(3);
  for (int n = 0; n < 500; ++n) anywhere.read(random() % blocks);
  EXPECT_LE(anywhere.fetched(), 550u);
}

TEST(read_ahead, recognises_scattered_reads) {
  read_ahead ahead;
  ahead.reset(100000, 16);
  const auto touch = [&](std::uint64_t block, bool alone) { static_cast<void>(ahead.touched(block, alone)); };
  std::uint64_t block = 0;
  const auto lone_touches = [&](int n) {
    for (int i = 0; i < n; ++i) touch(block += 100, true);
  };
  lone_touches(31);
  EXPECT_FALSE(ahead.scattered());
  touch(block - 1, false);  // next to a block that was touched before
  lone_touches(1);
  EXPECT_FALSE(ahead.scattered());
  touch(block + 1, true);  // now the touches form a walk
  lone_touches(1);
  EXPECT_FALSE(ahead.scattered());
  lone_touches(1);
  EXPECT_TRUE(ahead.scattered());
  for (int i = 0; i < 100; ++i) touch(++block, true);
  EXPECT_FALSE(ahead.scattered());
  lone_touches(31);
  EXPECT_FALSE(ahead.scattered());
  ahead.reset(100000, 16);
  EXPECT_FALSE(ahead.scattered());
}

TEST(read_ahead, knows_the_length_of_a_walk) {
  read_ahead ahead;
  ahead.reset(1000, 4);
  EXPECT_EQ(ahead.walked(0), 0U);
  EXPECT_TRUE(ahead.touched(100).empty());
  block_run last = ahead.touched(101);
  EXPECT_EQ(ahead.walked(last.end), last.end - 100);
  last = ahead.touched(102);
  for (int i = 0; i < 50; ++i) last = ahead.touched(last.begin);
  EXPECT_GT(last.end, 200U) << "windows of four blocks";
  EXPECT_EQ(ahead.walked(last.end), last.end - 100);
  EXPECT_EQ(ahead.walked(last.end + 1), 0U);
  ahead.reset(1000, 4);
  EXPECT_EQ(ahead.walked(last.end), 0U);
}

TEST(read_ahead, interleaved_walks_are_distinguished) {
  constexpr std::uint64_t blocks = 1600;
  constexpr std::uint64_t walks = 8;
  reader host(blocks, 16);
  for (std::uint64_t b = 0; b < blocks / walks; ++b)
    for (std::uint64_t w = 0; w < walks; ++w) host.read(w * (blocks / walks) + b);
  EXPECT_EQ(host.fetched(), blocks);
  EXPECT_LE(host.waits, 2 * walks);
}

TEST(read_ahead, a_walk_shared_by_threads_arrives_a_little_out_of_order) {
  constexpr std::uint64_t blocks = 400;
  reader host(blocks, 16);
  std::mt19937 random(9);
  std::vector<std::uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint64_t b = 0; b + 3 < blocks; b += 3) std::shuffle(&order[b], &order[b] + 3, random);
  for (const std::uint64_t b : order) host.read(b);
  EXPECT_EQ(host.fetched(), blocks);
  EXPECT_LE(host.waits, 12u);
}

TEST(read_ahead, a_walk_skips_ahead_within_its_slack) {
  read_ahead ahead;
  ahead.reset(100, 16);
  EXPECT_TRUE(ahead.touched(10).empty());
  EXPECT_EQ(ahead.touched(14), (block_run{11, 17}));  // including the blocks that the walk skipped
  EXPECT_TRUE(ahead.touched(40).empty());             // too far away to continue the walk, so it begins another
}

TEST(read_ahead, no_window_means_no_reading_ahead) {
  reader host(100, 0);
  for (std::uint64_t b = 0; b < 100; ++b) host.read(b);
  EXPECT_EQ(host.waits, 100u);
  EXPECT_EQ(host.largest, 1u);
}

TEST(read_ahead, reset_forgets_walks_and_markers) {
  read_ahead ahead;
  ahead.reset(100, 16);
  (void)ahead.touched(0);
  (void)ahead.touched(1);
  ASSERT_TRUE(ahead.is_marker(2));
  ahead.reset(100, 16);
  EXPECT_FALSE(ahead.is_marker(2));
  EXPECT_FALSE(ahead.is_marker(0));
  EXPECT_TRUE(ahead.touched(2).empty());
}

TEST(read_ahead, tiny_regions) {
  for (std::uint64_t blocks = 1; blocks <= 5; ++blocks) {
    reader host(blocks, 16);
    for (std::uint64_t b = 0; b < blocks; ++b) host.read(b);
    EXPECT_EQ(host.fetched(), blocks);
  }
}

}  // namespace
}  // namespace hpe::coherence
