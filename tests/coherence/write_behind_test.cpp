#include "runtime/coherence/write_behind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace hpe::coherence {
namespace {

/// A model of a host that writes blocks that need no fetch, and of a runtime that executes the plans: it opens blocks
/// ahead of the writer, uploads blocks behind the writer, and closes the uploaded blocks to writes.
class writer {
 public:
  writer(std::uint64_t blocks, std::uint64_t window, rolling_mode mode) : blocks_(blocks) {
    behind_.reset(blocks, window, mode);
  }

  void write(std::uint64_t b) {
    if (!open_[b]) {
      ++faults;
      const auto plan = behind_.touched(b, rolled_[b], [&](std::uint64_t other) { return !open_[other]; });
      open_[b] = true;
      ASSERT_LE(plan.open.end, blocks_);
      if (!plan.open.empty()) {
        ASSERT_GT(plan.open.begin, b);
      }
      for (std::uint64_t a = plan.open.begin; a < plan.open.end; ++a) {
        ASSERT_FALSE(open_[a]) << "opened twice";
        open_[a] = true;
      }
      for (const block_run& run : plan.upload) {
        ASSERT_LT(run.begin, run.end);
        ASSERT_LE(run.end, blocks_);
        for (std::uint64_t u = run.begin; u < run.end; ++u) {
          if (!open_[u]) ++useless;
          ASSERT_NE(u, b) << "the block that is about to be written";
          if (open_[u]) ++uploads;
          open_[u] = false;
          rolled_[u] = true;
          at_home_[u] = at_host_[u];
        }
      }
    }
    at_host_[b] = ++clock_;
  }

  void release() {
    for (std::uint64_t b = 0; b < blocks_; ++b) {
      if (open_[b]) ++left;
      at_home_[b] = at_host_[b];
    }
    open_.assign(blocks_, false);
    rolled_.assign(blocks_, false);
    behind_.released();
  }

  [[nodiscard]] std::uint64_t open() const {
    return static_cast<std::uint64_t>(std::count(open_.begin(), open_.end(), true));
  }
  [[nodiscard]] bool nothing_lost() const { return at_home_ == at_host_; }

  std::uint64_t faults = 0;
  std::uint64_t uploads = 0;  // blocks uploaded behind the host
  std::uint64_t useless = 0;  // uploads of a block that was not open
  std::uint64_t left = 0;     // blocks uploaded by releases

 private:
  std::uint64_t blocks_;
  std::uint64_t clock_ = 0;
  write_behind behind_;
  std::vector<bool> open_ = std::vector<bool>(blocks_);
  std::vector<bool> rolled_ = std::vector<bool>(blocks_);
  std::vector<std::uint64_t> at_host_ = std::vector<std::uint64_t>(blocks_);
  std::vector<std::uint64_t> at_home_ = std::vector<std::uint64_t>(blocks_);
};

TEST(write_behind, a_sequential_writer_leaves_a_window_behind) {
  for (const std::uint64_t window : {1, 4, 16, 64}) {
    SCOPED_TRACE(window);
    constexpr std::uint64_t blocks = 1000;
    writer host(blocks, window, rolling_mode::sequential);
    for (std::uint64_t b = 0; b < blocks; ++b) {
      host.write(b);
      ASSERT_FALSE(testing::Test::HasFatalFailure());
      ASSERT_LE(host.open(), window + 1) << b;
    }
    EXPECT_EQ(host.useless, 0u);
    EXPECT_GE(host.uploads, blocks - window - 1);
    EXPECT_LE(host.uploads, blocks) << "each block once";
    EXPECT_LE(host.faults, window < 8 ? blocks : 8 * blocks / window + 12);
    host.release();
    EXPECT_LE(host.left, window + 1);
    EXPECT_EQ(host.uploads + host.left, blocks);
    EXPECT_TRUE(host.nothing_lost());
  }
}

constexpr std::uint64_t walks = 8;
constexpr std::uint64_t walk_length = 200;

TEST(write_behind, several_writers_share_the_window) {
  for (const std::uint64_t window : {4, 8, 16, 32, 64}) {
    SCOPED_TRACE(window);
    const std::uint64_t ahead = window >= 8 ? std::max<std::uint64_t>(window / 2 / walks, 2) : 1;
    const std::uint64_t most_open = std::max(window, 2 * ahead * walks);
    writer host(walks * walk_length, window, rolling_mode::sequential);
    for (std::uint64_t b = 0; b < walk_length; ++b) {
      for (std::uint64_t w = 0; w < walks; ++w) {
        host.write(w * walk_length + b);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        ASSERT_LE(host.open(), most_open + 1);
      }
    }
    EXPECT_GE(host.uploads, walks * walk_length - most_open - 1);
    EXPECT_LE(host.uploads, walks * walk_length) << "no block is uploaded before it is written";
    host.release();
    EXPECT_TRUE(host.nothing_lost());
  }
}

TEST(write_behind, a_writer_among_several_may_be_held_up) {
  writer host(walks * walk_length, 32, rolling_mode::sequential);
  std::array<std::uint64_t, walks> at{};
  std::mt19937 random(4);
  while (std::any_of(at.begin(), at.end(), [](std::uint64_t a) { return a < walk_length; })) {
    // One writer runs for a time slice while the other writers wait.
    const std::uint64_t w = random() % walks;
    for (unsigned n = random() % 40; n > 0 && at[w] < walk_length; --n) host.write(w * walk_length + at[w]++);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
  }
  EXPECT_GE(host.uploads, walks * walk_length - 35);
  EXPECT_LE(host.uploads, walks * walk_length + walks * walk_length / 8);
  host.release();
  EXPECT_TRUE(host.nothing_lost());
}

/// Models threads that take parts of `part` blocks of an array in turn. Each thread writes its part a quarter of a
/// block at a time, at varying speed.
void write_in_parts(writer& host, std::uint64_t blocks, std::uint64_t part, unsigned threads, bool together) {
  struct thread {
    std::uint64_t at = 0;  // position in quarters of blocks
    std::uint64_t end = 0;
    double time = 0;
  };
  std::mt19937 random(7);
  std::vector<thread> all(threads);
  for (thread& t : all) t.time = together ? 0 : static_cast<double>(random() % 1000) / 100;
  for (std::uint64_t next = 0;;) {
    thread* first = nullptr;
    for (thread& t : all)
      if ((t.at != t.end || next < blocks) && (first == nullptr || t.time < first->time)) first = &t;
    if (first == nullptr) return;
    if (first->at == first->end) {
      first->at = 4 * next;
      next += part;
      first->end = 4 * next;
    }
    host.write(first->at++ / 4);
    if (testing::Test::HasFatalFailure()) return;
    first->time += 0.25 + 0.0001 * static_cast<double>(random() % 1000);
  }
}

TEST(write_behind, the_latest_blocks_of_a_walk_stay_open_while_another_goes_on) {
  write_behind behind;
  behind.reset(4096, 16, rolling_mode::sequential);
  const auto opens = [](std::uint64_t) { return true; };
  block_run latest{0, 0};
  for (std::uint64_t b = 0; latest.end < 6; b = latest.end) {
    const auto plan = behind.touched(b, false, opens);
    latest = {b, std::max(b + 1, plan.open.end)};
  }
  std::uint64_t uploaded = 0;
  std::uint64_t next = 2000;
  for (int touch = 0; touch < 20; ++touch) {
    const auto plan = behind.touched(next, false, opens);
    next = std::max(next + 1, plan.open.end);
    for (const block_run& run : plan.upload) {
      EXPECT_TRUE(run.end <= latest.begin || run.begin >= latest.end) << run.begin << " to " << run.end;
      uploaded += run.end - run.begin;
    }
  }
  EXPECT_GT(uploaded, 16U) << "the other walk is uploaded behind";
}

TEST(write_behind, threads_that_share_an_array_are_uploaded_behind) {
  constexpr std::uint64_t blocks = 512;
  constexpr std::uint64_t window = 32;
  for (const std::uint64_t part : {1, 2, 4, 8})
    for (const unsigned threads : {2U, 4U, 8U})
      for (const bool together : {true, false}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, parts of " + std::to_string(part) + " blocks");
        writer host(blocks, window, rolling_mode::sequential);
        write_in_parts(host, blocks, part, threads, together);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        EXPECT_GE(host.uploads, blocks - window - 8);
        EXPECT_LE(host.uploads, blocks + blocks / 8) << "too many blocks are uploaded too early";
        host.release();
        EXPECT_LE(host.left, window + 8);
        EXPECT_TRUE(host.nothing_lost());
      }
}

TEST(write_behind, random_writers_keep_their_blocks_until_the_release) {
  constexpr std::uint64_t blocks = 100000;
  writer host(blocks, 16, rolling_mode::sequential);
  std::mt19937 random(1);
  for (int n = 0; n < 2000; ++n) host.write(random() % blocks);
  EXPECT_LE(host.uploads, 100u);  // some random writes look like a walk by chance
  host.release();
  EXPECT_TRUE(host.nothing_lost());

  writer told(blocks, 16, rolling_mode::always);
  for (std::uint64_t n = 0; n < 2000; ++n) {
    told.write((n * 7919) % blocks);
    ASSERT_LE(told.open(), 16u + 1);
  }
  EXPECT_GE(told.uploads, 1900u);
}

TEST(write_behind, lazy_writers_are_left_alone) {
  writer host(1000, 16, rolling_mode::never);
  for (std::uint64_t b = 0; b < 1000; ++b) host.write(b);
  EXPECT_EQ(host.uploads, 0u);
  EXPECT_EQ(host.faults, 1000u);
}

TEST(write_behind, gives_up_on_a_writer_that_comes_back_until_the_next_release) {
  constexpr std::uint64_t blocks = 100;
  writer host(blocks, 8, rolling_mode::sequential);
  for (int pass = 0; pass < 20; ++pass)
    for (std::uint64_t b = 0; b < blocks; ++b) host.write(b);
  EXPECT_LE(host.uploads, 2 * blocks);
  host.release();
  EXPECT_TRUE(host.nothing_lost());

  const std::uint64_t before = host.uploads;
  for (std::uint64_t b = 0; b < blocks; ++b) host.write(b);
  EXPECT_GE(host.uploads - before, blocks - 8 - 1);
}

TEST(write_behind, many_random_passes_stay_within_their_memory) {
  // The list of open blocks is bounded even if no block is ever uploaded.
  write_behind behind;
  behind.reset(1 << 20, 64, rolling_mode::sequential);
  const auto all = [](std::uint64_t) { return true; };
  for (std::uint64_t n = 0; n < 50000; ++n)
    EXPECT_TRUE(behind.touched((n * 7919) % (1 << 20), false, all).upload.empty());
  // In a later walk, blocks are again uploaded behind the writer.
  std::uint64_t uploaded = 0;
  for (std::uint64_t b = 1000; b < 1300; ++b)
    for (const block_run& run : behind.touched(b, false, all).upload) uploaded += run.end - run.begin;
  EXPECT_GT(uploaded, 0u);
}

TEST(write_behind, tiny_regions_end_where_they_end) {
  for (std::uint64_t blocks = 1; blocks <= 6; ++blocks) {
    for (const std::uint64_t window : {0, 1, 4, 100}) {
      writer host(blocks, window, rolling_mode::sequential);
      for (std::uint64_t b = 0; b < blocks; ++b) {
        host.write(b);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
      }
      host.release();
      EXPECT_TRUE(host.nothing_lost());
    }
  }
}

}  // namespace
}  // namespace hpe::coherence
