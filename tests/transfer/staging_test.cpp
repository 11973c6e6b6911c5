#include "runtime/transfer/staging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/transfer/machine.h"

namespace hpe::transfer {
namespace {

using namespace transfer_test;

class staging : public testing::Test {
 protected:
  machine soft{"soft:2"};
};

TEST_F(staging, buffers_are_different_and_side_by_side) {
  staging_ring ring(*soft.set, soft.staging(), 64 * kib, 4);
  EXPECT_EQ(ring.buffer_size(), 64 * kib);
  std::set<std::byte*> all;
  for (int i = 0; i < 4; ++i) all.insert(ring.take());
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(*all.begin(), soft.staging());
  EXPECT_EQ(*all.rbegin(), soft.staging() + 3 * 64 * kib);
  EXPECT_EQ(ring.try_take(), nullptr);
  ring.give_back(soft.staging() + 64 * kib, {});
  EXPECT_EQ(ring.try_take(), soft.staging() + 64 * kib);
}

TEST_F(staging, a_buffer_comes_back_when_its_loan_ends) {
  staging_ring ring(*soft.set, soft.staging(), 64 * kib, 1);
  {
    staged first(ring, ring.take(), 100);
    EXPECT_EQ(first.size(), 100u);
    EXPECT_EQ(ring.try_take(), nullptr);
    const staged moved(std::move(first));
    EXPECT_EQ(moved.data(), soft.staging());
    EXPECT_EQ(ring.try_take(), nullptr);
  }
  EXPECT_EQ(ring.take(), soft.staging());
}

TEST_F(staging, a_buffer_is_free_only_when_the_work_on_it_has_finished) {
  staging_ring ring(*soft.set, soft.staging(), mib, 1);
  device::stream& stream = soft.set->at(0).create_stream(device::priority::launch);
  for (int round = 1; round <= 50; ++round) {
    timepoint done;
    {
      staged buffer(ring, ring.take(), mib);
      for (int n = 0; n < 4; ++n) done = stream.copy(soft.at(0), buffer.data(), mib);
      buffer.busy_until(done);
    }
    std::byte* const again = ring.take();
    EXPECT_TRUE(soft.set->reached(done));
    ring.give_back(again, {});
  }
}

// The ring must return a free buffer before a busy one, so that one direction of a link does not wait for the other.
TEST_F(staging, a_buffer_whose_work_is_done_comes_before_one_that_is_busy) {
  staging_ring ring(*soft.set, soft.staging(), 64 * kib, 3);
  device::stream& stream = soft.set->at(0).create_stream(device::priority::launch);
  const timepoint done = stream.fill(soft.at(0), 1, 1);
  soft.wait(done);
  const timepoint later{done.timeline, done.value + 2};  // points of commands that are not queued yet
  std::byte* const busy = ring.take();
  std::byte* const idle = ring.take();
  std::byte* const busy_too = ring.take();
  ring.give_back(busy, {later.timeline, later.value - 1});
  ring.give_back(idle, done);
  ring.give_back(busy_too, later);
  EXPECT_EQ(ring.take(), idle);
  // Now take() has to wait for the first buffer.
  (void)stream.fill(soft.at(0), 1, 1);
  EXPECT_EQ(ring.take(), busy);
  (void)stream.fill(soft.at(0), 1, 1);
  EXPECT_EQ(ring.try_take(), busy_too);
}

TEST_F(staging, threads_wait_for_each_others_buffers) {
  constexpr std::size_t count = 2;
  staging_ring ring(*soft.set, soft.staging(), 64 * kib, count);
  std::atomic<int> owners[count] = {};
  const auto work = [&] {
    for (int n = 0; n < 300; ++n) {
      const staged buffer(ring, ring.take(), 64 * kib);
      auto& owner = owners[static_cast<std::size_t>(buffer.data() - soft.staging()) / (64 * kib)];
      EXPECT_EQ(owner.fetch_add(1), 0) << "two threads have the same buffer";
      std::this_thread::yield();
      owner.fetch_sub(1);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
}

TEST(next_chunk, grows_and_shrinks_and_covers_everything) {
  for (const std::size_t most : {4 * mib, 512 * kib, 64 * kib})
    for (const std::size_t total : {std::size_t{1}, 4095UL, 512 * kib, 512 * kib + 1, 7 * mib + 3, 64 * mib}) {
      std::size_t done = 0;
      std::size_t largest = 0;
      std::size_t last = 0;
      while (done < total) {
        last = next_chunk(done, total - done, most);
        ASSERT_GT(last, 0U) << total << " bytes, " << most << " at most";
        ASSERT_LE(last, std::min(most, total - done)) << total << " bytes, " << most << " at most";
        if (done == 0) {
          EXPECT_LE(last, 512 * kib);
        }
        largest = std::max(largest, last);
        done += last;
      }
      EXPECT_LE(last, 512 * kib) << total;
      if (total == 64 * mib) {
        EXPECT_EQ(largest, most);
      }
    }
}

}  // namespace
}  // namespace hpe::transfer
