#include "runtime/coherence/announcements.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "runtime/base/granule.h"

namespace hpe::coherence {
namespace {

constexpr std::uint64_t kib = 1024;

class announcements_test : public testing::Test {
 protected:
  announcements_test() {
    begin(one_, region_kind::device, {3});
    begin(other_, region_kind::device, {4});
    begin(host_, region_kind::host, {});
    begin(striped_, region_kind::striped, {0, 5});
  }
  static void begin(region& r, region_kind kind, std::vector<std::uint16_t> homes) {
    auto* const base = reinterpret_cast<std::byte*>(0x200000000000 + r.id * (std::uint64_t{1} << 30));
    const std::uint64_t bytes = homes.size() > 1 ? homes.size() * granule_size : 1000 * kib;
    r.begin({.kind = kind,
             .base = base,
             .bytes = bytes,
             .extent = bytes,
             .block_size = 64 * kib,
             .homes = std::move(homes)},
            0, 0);
  }

  region one_{1};
  region other_{2};
  region host_{3};
  region striped_{4};
  announcements all_;
};

TEST_F(announcements_test, one_of_a_home_covers_all_of_its_memory) {
  EXPECT_FALSE(all_.any());
  EXPECT_EQ(all_.in_the_way(one_, {0, 1}, true), 0u);
  const auto number = all_.add(std::uint64_t{1} << 3, {});
  EXPECT_TRUE(all_.any());
  EXPECT_EQ(all_.in_the_way(one_, {0, 1}, false), number);
  EXPECT_EQ(all_.in_the_way(other_, {0, 1}, true), 0u);
  EXPECT_EQ(all_.in_the_way(host_, {0, 1}, true), 0u);
  EXPECT_FALSE(all_.remove(number));
  EXPECT_FALSE(all_.remove(number));
  EXPECT_FALSE(all_.any());
  EXPECT_EQ(all_.in_the_way(one_, {0, 1}, true), 0u);
}

TEST_F(announcements_test, those_on_striped_memory_are_distinguished_by_granule) {
  (void)all_.add(std::uint64_t{1} << 5, {});
  EXPECT_EQ(all_.in_the_way(striped_, {0, granule_size}, true), 0u);
  EXPECT_NE(all_.in_the_way(striped_, {granule_size - 1, granule_size + 1}, true), 0u);
}

TEST_F(announcements_test, one_of_bytes_covers_these_bytes) {
  const auto reads = all_.add(0, {{one_.id, {10, 20}, false}});
  EXPECT_EQ(all_.in_the_way(one_, {0, 100}, false), 0u);
  EXPECT_EQ(all_.in_the_way(one_, {0, 100}, true), reads);
  EXPECT_EQ(all_.in_the_way(one_, {0, 10}, true), 0u);
  EXPECT_EQ(all_.in_the_way(one_, {20, 21}, true), 0u);
  EXPECT_EQ(all_.in_the_way(other_, {0, 100}, true), 0u);
  const auto writes = all_.add(0, {{other_.id, {0, 1}, true}, {one_.id, {15, 30}, true}});
  EXPECT_EQ(all_.in_the_way(one_, {29, 30}, false), writes);
  EXPECT_EQ(all_.in_the_way(one_, {0, 100}, true), writes);  // the latest announcement
  EXPECT_FALSE(all_.remove(writes));
  EXPECT_EQ(all_.in_the_way(one_, {0, 100}, true), reads);
}

TEST_F(announcements_test, tell_whoever_watches) {
  const auto first = all_.add(std::uint64_t{1} << 3, {});
  const auto second = all_.add(std::uint64_t{1} << 3, {});
  EXPECT_EQ(all_.in_the_way(one_, {0, 1}, false, true), second);
  EXPECT_FALSE(all_.remove(first));
  EXPECT_TRUE(all_.remove(second));
}

TEST_F(announcements_test, are_waited_for) {
  const auto number = all_.add(std::uint64_t{1} << 3, {});
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    removed = true;
    (void)all_.remove(number);
  });
  all_.wait_for(number);
  EXPECT_TRUE(removed);
  all_.wait_for(number);  // returns at once, because the announcement has been removed
  remover.join();
}

TEST_F(announcements_test, a_region_knows_whether_a_view_may_be_open) {
  EXPECT_TRUE(one_.open_to_host);
  one_.close_to_host();
  EXPECT_TRUE(one_.open_to_host);  // still true, because the blocks are fresh
  one_.transition(one_.all_blocks(), block_event::device_write);
  EXPECT_TRUE(one_.open_to_host);
  one_.close_to_host();
  EXPECT_FALSE(one_.open_to_host);
  one_.open_soon();
  EXPECT_TRUE(one_.open_to_host);
  one_.close_to_host();
  one_.transition({2, 3}, block_event::host_overwrite);
  EXPECT_TRUE(one_.open_to_host);
}

TEST_F(announcements_test, do_not_hold_up_the_thread_that_does_the_announced_work) {
  const auto number = all_.add(0, {{one_.id, {10, 20}, true}});
  auto touches = std::async(std::launch::async, [&] {
    this_announced_thread().at_work = true;
    all_.wait_before(one_, {0, 100}, true);
  });
  EXPECT_EQ(touches.wait_for(std::chrono::seconds(2)), std::future_status::ready);
  (void)all_.remove(number);  // so that the waiting thread ends even if the test has failed
}

}  // namespace
}  // namespace hpe::coherence
