// Tests the engine on real soft devices: on devices that reach each other (one switch), and on devices that do not (two
// switches).

#include "runtime/transfer/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transfer/machine.h"

namespace hpe::transfer {
namespace {

using namespace transfer_test;
using device::priority;

constexpr std::size_t buffer = 64 * kib;

std::vector<std::byte> noise(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> result(bytes);
  std::generate(result.begin(), result.end(), [&] { return static_cast<std::byte>(random()); });
  return result;
}

class engine_test : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] bool peers() const { return soft.set->at(0).can_access(1); }

  /// Copies from pageable host memory to a home, through staging buffers.
  timepoint write(unsigned home, std::byte* to, std::span<const std::byte> bytes) {
    timepoint done;
    for (std::size_t at = 0; at < bytes.size(); at += move.staging_size()) {
      const std::size_t chunk = std::min(move.staging_size(), bytes.size() - at);
      auto staged = engine::filled(move.stage(home, bytes.data() + at, chunk, bytes.size()));
      done = move.write(home, to + at, staged, 0, chunk, {});
    }
    return done;
  }
  std::vector<std::byte> read(unsigned home, const std::byte* from, std::size_t bytes, points after) {
    for (const timepoint p : after) soft.set->wait(p, std::chrono::steady_clock::time_point::max());
    std::vector<std::byte> result(bytes);
    for (std::size_t at = 0; at < bytes; at += move.staging_size()) {
      const std::size_t chunk = std::min(move.staging_size(), bytes - at);
      auto staged = move.borrow(home);
      move.finish(move.read(home, staged, from + at, chunk));
      std::copy_n(staged.data(), chunk, result.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return result;
  }

  /// Copies from home to home, by any route.
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after) {
    if (move.route_between(to, from) != route::peer_staged)
      return move.copy(to, destination, from, source, bytes, after);
    timepoint done;
    for (std::size_t at = 0; at < bytes; at += move.staging_size()) {
      const std::size_t chunk = std::min(move.staging_size(), bytes - at);
      auto through = move.borrow(to);
      done = move.copy(to, destination + at, from, source + at, chunk, after, through, 0);
    }
    return done;
  }

  machine soft{GetParam()};
  counters count;
  engine move{*soft.set, soft.space, {.buffer = buffer, .count = 4}, count};
};

TEST_P(engine_test, host_memory_of_any_size_goes_and_comes_back) {
  for (unsigned d = 0; d < devices; ++d) {
    for (const std::size_t bytes : {std::size_t{1}, buffer - 1, buffer, buffer + 1, 11 * buffer + 77}) {
      const auto sent = noise(bytes, d);
      const timepoint done = write(d, soft.at(d, 3), sent);
      EXPECT_EQ(read(d, soft.at(d, 3), bytes, {&done, 1}), sent) << bytes;
    }
  }
}

TEST_P(engine_test, a_staged_source_may_be_changed_immediately) {
  auto bytes = noise(buffer, 1);
  const auto before = bytes;
  auto staged = engine::filled(move.stage(0, bytes.data(), buffer, buffer));
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  // Copies the two halves of one buffer to two devices.
  const timepoint parts[] = {move.write(0, soft.at(0), staged, 0, buffer / 2, {}),
                             move.write(1, soft.at(1), staged, buffer / 2, buffer / 2, {})};
  EXPECT_TRUE(std::ranges::equal(read(0, soft.at(0), buffer / 2, parts), std::span(before).first(buffer / 2)));
  EXPECT_TRUE(std::ranges::equal(read(1, soft.at(1), buffer / 2, parts), std::span(before).last(buffer / 2)));
}

TEST_P(engine_test, a_second_buffer_is_begun_while_there_is_one) {
  const auto bytes = noise(5 * buffer, 2);
  {
    std::vector<engine::filling> begun;
    for (int i = 0; i < 4; ++i) {
      auto next = move.try_stage(0, bytes.data() + static_cast<std::size_t>(i) * buffer, buffer, 5 * buffer);
      ASSERT_TRUE(next) << i << " of 4 buffers are taken";
      begun.push_back(std::move(*next));
    }
    EXPECT_FALSE(move.try_stage(0, bytes.data() + 4 * buffer, buffer, 5 * buffer)) << "all are taken";
    for (std::size_t i = 0; i < begun.size(); ++i) {
      const auto full = engine::filled(std::move(begun[i]));
      EXPECT_TRUE(std::ranges::equal(std::span(full.data(), buffer), std::span(bytes).subspan(i * buffer, buffer)));
    }
  }
  EXPECT_TRUE(move.try_stage(0, bytes.data(), buffer, buffer)) << "they are back";
}

TEST_P(engine_test, shadow_and_home_are_two_copies) {
  for (unsigned d = 0; d < devices; ++d) {
    std::byte* const p = soft.at(d, mib);
    std::byte* const shadow = soft.space.alias(p);
    const auto first = noise(5 * mib, d);
    std::ranges::copy(first, shadow);
    const timepoint up = move.upload(d, p, first.size(), {}, priority::rolling);
    soft.wait(up);
    std::fill_n(shadow, first.size(), std::byte{0});
    const timepoint down = move.download(d, p, first.size(), {&up, 1}, priority::waiting_host);
    soft.wait(down);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), shadow));
  }
  EXPECT_EQ(count.bytes_to_device.load(), devices * 5 * mib);
  EXPECT_EQ(count.bytes_to_host.load(), devices * 5 * mib);
  EXPECT_EQ(count.bytes_staged.load(), 0u);
}

TEST_P(engine_test, copies_of_registered_memory_are_counted_by_their_direction) {
  std::byte* const registered = soft.space.alias(soft.at(0, 8 * mib));
  soft.wait(move.copy_from_host(0, soft.at(0), registered, 3 * kib, {}));
  EXPECT_EQ(count.bytes_to_device.load(), 3 * kib);
  EXPECT_EQ(count.bytes_to_host.load(), 0u);
  soft.wait(move.copy_to_host(0, registered, soft.at(0), 5 * kib));
  EXPECT_EQ(count.bytes_to_device.load(), 3 * kib);
  EXPECT_EQ(count.bytes_to_host.load(), 5 * kib);
  EXPECT_EQ(count.bytes_staged.load(), 8 * kib);
}

TEST_P(engine_test, streams_follow_the_points_that_they_are_given) {
  // A long chain across priorities and devices; a copy that did not wait would find the previous value.
  std::byte* const here = soft.at(0);
  std::byte* const there = soft.at(1);
  constexpr std::size_t bytes = 4 * mib;
  timepoint last;
  for (unsigned round = 1; round <= 8; ++round) {
    last = move.fill(0, here, static_cast<std::uint8_t>(round), bytes, {&last, 1});
    last = copy(1, there, 0, here, bytes, {&last, 1});
    last = move.download(1, there, bytes, {&last, 1}, priority::prefetch);
    soft.wait(last);
    const std::byte* const shadow = soft.space.alias(there);
    ASSERT_EQ(std::count(shadow, shadow + bytes, static_cast<std::byte>(round)), static_cast<std::ptrdiff_t>(bytes));
  }
}

// Each kind of copy to a home must wait for its points. In this test, the point is a command that is queued later, on
// another stream.
TEST_P(engine_test, every_copy_to_a_home_waits_for_its_points) {
  std::byte* const to = soft.at(0);
  std::byte* const registered = soft.space.alias(soft.at(1, mib));
  const auto waits = [&](const char* what, const auto& queue) {
    device::stream& other = soft.set->at(1).create_stream(priority::launch);
    const timepoint before = other.fill(soft.at(1), 1, 1);
    const timepoint later{before.timeline, before.value + 1};
    const timepoint done = queue(points(&later, 1));
    soft.wait(before);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(soft.set->reached(done)) << what;
    (void)other.fill(soft.at(1), 1, 1);
    soft.wait(done);
  };
  waits("copy_from_host", [&](points after) { return move.copy_from_host(0, to, registered, kib, after); });
  waits("upload", [&](points after) { return move.upload(0, to, kib, after, priority::rolling); });
  waits("download", [&](points after) { return move.download(0, to, kib, after, priority::prefetch); });
  waits("fill", [&](points after) { return move.fill(0, to, 1, kib, after); });
  waits("copy_foreign", [&](points after) { return move.copy_foreign(0, to, soft.at(0, mib), kib, after); });
  waits("write", [&](points after) {
    auto staged = move.borrow(0);
    return move.write(0, to, staged, 0, kib, after);
  });
}

TEST_P(engine_test, a_buffer_that_helpers_filled_holds_all_bytes) {
  constexpr std::size_t bytes = 8 * mib;
  counters other_count;
  engine helped(*soft.set, soft.space, {.buffer = bytes, .count = 1, .threads = 2}, other_count);
  const auto sent = noise(bytes, 5);
  for (int round = 0; round < 5; ++round) {
    auto begun = helped.stage(0, sent.data(), bytes, bytes);
    const auto staged = engine::filled(std::move(begun));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), staged.data()));
    std::fill_n(staged.data(), bytes, std::byte{0});
  }
}

// A staging buffer has only one timepoint, which must cover all commands that read the buffer.
TEST_P(engine_test, a_buffer_for_two_homes_is_busy_until_both_have_read_it) {
  device::stream& other = soft.set->at(1).create_stream(priority::launch);
  const timepoint before = other.fill(soft.at(1), 1, 1);
  const timepoint later{before.timeline, before.value + 1};
  auto staged = move.borrow(0);
  const timepoint first = move.write(0, soft.at(0), staged, 0, kib, {&later, 1});
  const timepoint second = move.write(1, soft.at(1, mib), staged, 0, kib, {});
  EXPECT_EQ(staged.busy_until(), second);
  soft.wait(before);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(soft.set->reached(second));
  (void)other.fill(soft.at(1), 1, 1);
  soft.wait(second);
  EXPECT_TRUE(soft.set->reached(first));
}

TEST_P(engine_test, devices_copy_to_themselves_and_to_each_other) {
  const auto sent = noise(9 * buffer + 5, 3);
  timepoint done = write(0, soft.at(0), sent);
  done = copy(0, soft.at(0, 8 * mib), 0, soft.at(0), sent.size(), {&done, 1});
  EXPECT_EQ(count.bytes_peer.load(), 0u);
  done = copy(1, soft.at(1), 0, soft.at(0, 8 * mib), sent.size(), {&done, 1});
  EXPECT_EQ(count.bytes_peer.load(), sent.size());
  EXPECT_EQ(count.bytes_staged.load(), peers() ? sent.size() : 2 * sent.size())
      << "the sum includes the bytes that write() staged";
  done = copy(0, soft.at(0, 16 * mib), 1, soft.at(1), sent.size(), {&done, 1});
  EXPECT_EQ(read(0, soft.at(0, 16 * mib), sent.size(), {&done, 1}), sent);
  const std::uint64_t before = count.bytes_peer;
  done = move.copy_foreign(0, soft.at(0, 24 * mib), soft.at(0), sent.size(), {&done, 1});
  EXPECT_EQ(count.bytes_peer.load() - before, sent.size());
  EXPECT_EQ(read(0, soft.at(0, 24 * mib), sent.size(), {&done, 1}), sent);
}

TEST_P(engine_test, many_threads_share_a_few_buffers) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const unsigned home = t % devices;
      for (unsigned round = 0; round < 20; ++round) {
        const auto sent = noise(6 * buffer + t, 100 * t + round);
        std::byte* const first = soft.at(home, t * 4 * mib);
        std::byte* const second = soft.at(1 - home, t * 4 * mib);
        timepoint done = write(home, first, sent);
        done = copy(1 - home, second, home, first, sent.size(), {&done, 1});
        ASSERT_EQ(read(1 - home, second, sent.size(), {&done, 1}), sent);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_P(engine_test, every_stream_is_named) {
  timepoint done = move.fill(1, soft.at(1), 1, 4096, {});
  bool seen = false;
  unsigned streams = 0;
  move.for_each_stream(1, [&](const device::stream& s) {
    ++streams;
    seen = seen || s.last() == done;
  });
  EXPECT_EQ(streams, 5u) << "one stream of each priority, and one stream for copies to peers out of reach";
  EXPECT_TRUE(seen);
}

TEST_P(engine_test, memory_that_nothing_backs_is_refused) {
  EXPECT_THROW(move.upload(0, soft.at(0, mapped), 4096, {}, priority::launch), error);
  EXPECT_THROW(move.download(0, soft.at(0, mapped - 4096), 8192, {}, priority::launch), error);
  // After the failure, the stream still works.
  const timepoint next = move.upload(0, soft.at(0), 4096, {}, priority::launch);
  soft.wait(next);
  EXPECT_FALSE(soft.set->status_of(next));
}

/// Two devices, each with its own group. The test records the threads and the memory that are bound to each group.
class groups_test : public testing::Test {
 protected:
  struct memory {
    unsigned group;
    std::byte* begin;
    std::size_t bytes;
  };
  device_groups near() {
    return {{0, 1},
            [this](unsigned group) { threads[group].fetch_add(1); },
            [this](unsigned group, void* begin, std::size_t bytes) {
              rings.push_back({group, static_cast<std::byte*>(begin), bytes});
            }};
  }
  [[nodiscard]] bool lies_in(const staged& buffer, unsigned group) const {
    const memory& ring = rings.at(group);
    return buffer.data() >= ring.begin && buffer.data() + buffer.size() <= ring.begin + ring.bytes;
  }

  std::atomic<unsigned> threads[2] = {};
  std::vector<memory> rings;
  machine soft{"soft:2"};
  counters count;
};

TEST_F(groups_test, have_buffers_and_threads_of_their_own) {
  constexpr std::size_t large = 2 * mib;
  engine move{*soft.set, soft.space, {.buffer = large, .count = 2, .threads = 3, .near = near()}, count};
  ASSERT_EQ(rings.size(), 2u);
  for (unsigned g = 0; g < 2; ++g) {
    EXPECT_EQ(rings[g].group, g);
    EXPECT_EQ(rings[g].bytes, 2 * large);
  }
  EXPECT_EQ(rings[0].begin, soft.staging());
  EXPECT_EQ(rings[1].begin, soft.staging() + 2 * large);

  const auto sent = noise(large, 11);
  for (unsigned home = 0; home < 2; ++home) {
    const auto first = engine::filled(move.stage(home, sent.data(), large, large));
    EXPECT_TRUE(lies_in(first, home));
    const auto second = move.borrow(home);
    EXPECT_TRUE(lies_in(second, home));
    EXPECT_FALSE(move.try_borrow(home)) << "a group must not borrow the other group's buffers";
    EXPECT_TRUE(std::ranges::equal(std::span(first.data(), large), sent));
  }
  // Helper threads bind themselves to their group before they copy. They may start at any time, so the test waits.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while ((threads[0] < 2 || threads[1] < 2) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(threads[0], 2u);
  EXPECT_EQ(threads[1], 2u);
}

INSTANTIATE_TEST_SUITE_P(, engine_test, testing::Values("soft:2", "soft:2x1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "peers" : "no_peers"); });

}  // namespace
}  // namespace hpe::transfer
