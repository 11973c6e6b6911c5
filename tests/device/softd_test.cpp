// Tests each part of a device's process separately.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/link.h"
#include "runtime/device/soft/shared/ptx_layout.h"
#include "runtime/device/soft/softd/copy_engine.h"
#include "runtime/device/soft/softd/crash_guard.h"
#include "runtime/device/soft/softd/heap.h"
#include "runtime/device/soft/softd/meter.h"
#include "runtime/device/soft/softd/softd_kernels.h"
#include "runtime/device/soft/softd/tile_pool.h"
#include "runtime/os/futex.h"
#include "runtime/os/virtual_memory.h"
#include "tests/device/layout.h"

namespace hpe::device::soft {
namespace {

using namespace std::chrono_literals;

// The weights of the samples add up to the number of blocks of the grid, and samples at the edges represent only edge
// blocks.
TEST(sampled_blocks, stand_for_all_blocks) {
  using ptx::dimensions;
  for (const dimensions grid :
       {dimensions{1, 1, 1}, {7, 1, 1}, {100000, 1, 1}, {64, 64, 1}, {300, 2, 5}, {1, 40, 40}}) {
    const auto sampled = sampled_blocks(grid, {});
    double all = 0, last_row = 0;
    for (const auto& [number, weight] : sampled) {
      ASSERT_LT(number, grid.count());
      all += weight;
      if (number / grid.x % grid.y == grid.y - 1) last_row += weight;
    }
    EXPECT_NEAR(all, static_cast<double>(grid.count()), 1e-6 * static_cast<double>(grid.count())) << grid.x;
    EXPECT_NEAR(last_row, static_cast<double>(grid.count() / grid.y), 1e-6 * static_cast<double>(grid.count()));
    EXPECT_LE(sampled.size(), 100U);
  }
}

TEST(sampled_blocks, begin_clusters) {
  double all = 0;
  for (const auto& [number, weight] : sampled_blocks({64, 8, 1}, {2, 4, 1})) {
    EXPECT_EQ(number % 64 % 2, 0U);
    EXPECT_EQ(number / 64 % 4, 0U);
    all += weight;
  }
  EXPECT_NEAR(all, 512, 1e-6);
}

TEST(kernel_heap, merges_free_neighbours_on_both_sides) {
  constexpr std::size_t size = 64 << 10, quarter = size / 4;
  kernel_heap heap(size);
  // Three adjacent blocks are released in different orders: a released block has no free neighbour, one after it, one
  // before it, or two.
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    std::array<void*, 3> blocks{};
    for (void*& block : blocks) block = heap.allocate(quarter);
    void* const last = heap.allocate(quarter);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(heap.allocate(16), nullptr);
    for (const int n : order) heap.release(blocks[static_cast<std::size_t>(n)]);
    void* const merged = heap.allocate(3 * quarter);
    EXPECT_EQ(merged, blocks[0]);
    heap.release(last);
    heap.release(merged);
    void* const all = heap.allocate(size);
    EXPECT_NE(all, nullptr);
    heap.release(all);
    heap.release(all);  // has no effect, because `all` is no longer an allocation
  }
  EXPECT_EQ(heap.allocate(0), nullptr);
  EXPECT_EQ(heap.allocate(size + 1), nullptr);
}

TEST(texts, of_a_module_come_out_as_they_went_in) {
  const std::vector<std::string> texts{".version 8.0", "", std::string("with a zero\0 inside", 19), "last"};
  std::size_t bytes = 0;
  const os::file_descriptor file = pack_texts(texts, bytes);
  EXPECT_EQ(unpack_texts(file.get(), bytes), texts);
}

// Returns an address at which every access raises SIGBUS, because it is mapped beyond the end of its file.
std::byte* behind_a_file(const os::file_descriptor& file) {
  void* const place = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return static_cast<std::byte*>(place) + 4096;
}

TEST(guard, locates_what_a_body_touched) {
  install_crash_handlers();
  const os::file_descriptor file = os::create_memory_file("hpe-test", 4096);
  std::byte* const missing = behind_a_file(file);
  const auto expect = [](int signal, volatile std::byte* address) {
    auto body = [&] { *address = std::byte{1}; };
    const auto found = run_guarded(body);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->signal, signal);
    EXPECT_EQ(found->address, reinterpret_cast<std::uintptr_t>(address));
    EXPECT_GT(found->code, 0);
    EXPECT_FALSE(is_stop(*found));
  };
  expect(SIGBUS, missing + 8);
  expect(SIGSEGV, reinterpret_cast<std::byte*>(0x40));
  std::byte here{};
  auto fine = [&] { here = std::byte{2}; };
  EXPECT_FALSE(run_guarded(fine));
  EXPECT_EQ(here, std::byte{2});
  const recoveries now = count_recoveries();
  EXPECT_EQ(now.begun, now.ended);
  ::munmap(missing - 4096, 8192);
}

TEST(guard, stops_what_asks_for_it_and_nothing_else) {
  install_crash_handlers();
  std::atomic<bool> stop{false}, there{false};
  std::optional<crash> found;
  std::thread spinning([&] {
    auto body = [&] {
      there = true;
      for (;;) os::hardware::relax();
    };
    found = run_guarded(body, &stop);
  });
  while (!there) std::this_thread::yield();
  stop_thread(spinning.native_handle());
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(found);
  stop = true;
  stop_thread(spinning.native_handle());
  spinning.join();
  ASSERT_TRUE(found);
  EXPECT_TRUE(is_stop(*found));
}

TEST(guard, lets_threads_that_crash_at_the_same_time_go_on) {
  install_crash_handlers();
  constexpr int count = 8;
  std::atomic<int> waiting{count}, recovered{0};
  std::byte* volatile const nowhere = reinterpret_cast<std::byte*>(0x40);  // volatile hides the address from GCC
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      auto body = [&] {
        --waiting;
        while (waiting != 0) os::hardware::relax();
        *nowhere = std::byte{1};
      };
      if (run_guarded(body)) ++recovered;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(recovered, count);
}

void spin(const void* running, const hpeTiles* /*tiles*/) {
  auto* const count = *static_cast<std::atomic<int>* const*>(running);
  ++*count;
  for (;;) os::hardware::relax();
}

TEST(tile_pool, stops_launches_of_teams_that_lost_a_device) {
  install_crash_handlers();
  auto& pool = *new tile_pool(2, 0, 0);  // never deleted, because its threads run until the process ends
  std::atomic<int> running{0};
  std::atomic<int>* const argument = &running;
  std::optional<tile_pool::trouble> trouble;
  std::thread launch([&] { trouble = pool.run(spin, &argument, {2, 1, 1}, 0b101); });
  while (running == 0) std::this_thread::yield();
  EXPECT_TRUE(pool.stop_teams(0b010));
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(trouble);
  while (!pool.stop_teams(0b100)) std::this_thread::sleep_for(1ms);
  launch.join();
  ASSERT_TRUE(trouble && trouble->signal);
  EXPECT_TRUE(is_stop(*trouble->signal));
}

struct count_parameters {
  std::atomic<std::uint64_t>* tiles;
};

void count_tiles(const void* parameters, const hpeTiles* tiles) {
  *static_cast<const count_parameters*>(parameters)->tiles += tiles->end - tiles->begin;
}

// Launches of several streams share the helper threads of the pool. During the launches, a device that is not in the
// launches' team may be lost.
TEST(tile_pool, runs_every_tile_of_launches_at_the_same_time) {
  install_crash_handlers();
  auto& pool = *new tile_pool(3, 0, 0);  // never deleted, because its threads run until the process ends
  constexpr unsigned streams = 3;
  constexpr std::uint64_t rounds = 2000, tiles = 6;
  std::array<std::atomic<std::uint64_t>, streams> counted{};
  std::atomic<unsigned> running{streams};
  std::vector<std::thread> threads;
  for (unsigned s = 0; s < streams; ++s)
    threads.emplace_back([&, s] {
      const count_parameters p{&counted[s]};
      for (std::uint64_t round = 0; round < rounds; ++round)
        EXPECT_FALSE(pool.run(count_tiles, &p, {3, 2, 1}, s == 0 ? 0 : 0b011));
      --running;
    });
  while (running != 0) EXPECT_TRUE(pool.stop_teams(0b100));
  for (std::thread& t : threads) t.join();
  for (const auto& count : counted) EXPECT_EQ(count, rounds * tiles);
}

TEST(tile_pool, forgets_each_launch_of_a_team) {
  install_crash_handlers();
  static auto& pool = *new tile_pool(1, 0, 0);  // never deleted, because its threads run until the process ends
  std::atomic<std::uint64_t> counted{0};
  const count_parameters p{&counted};
  constexpr std::uint64_t rounds = 20000, streams = 4;
  std::vector<std::thread> threads;
  for (unsigned s = 0; s < streams; ++s)
    threads.emplace_back([&] {
      for (std::uint64_t round = 0; round < rounds; ++round) pool.run(count_tiles, &p, {1, 1, 1}, 1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counted, rounds * streams);
  EXPECT_TRUE(pool.stop_teams(1)) << "an ended launch is still listed";
}

TEST(softd_kernels, is_read_while_kernels_are_found) {
  softd_kernels table;
  table.load(0, SOFTD_TEST_KERNELS);
  table.find(0, 0, "add");
  std::atomic<bool> over{false};
  std::thread launching([&] {
    while (!over) EXPECT_EQ(table.at(0).name, "add");
  });
  for (std::uint32_t n = 1; n < 40000; ++n) table.find(0, n * 7919 % 65521, "add");  // different numbers, not in order
  over = true;
  launching.join();
  EXPECT_THROW((void)table.at(70000), error);
  EXPECT_THROW(table.find(0, 70000, "no_such_kernel"), error);
  EXPECT_THROW(table.find(1, 70000, "add"), error);
}

TEST(copy_engine, takes_a_link_for_no_more_than_the_bytes_it_copies) {
  fabric shared{topology{1, 1}};
  shared.configuration().host_limit = {std::uint64_t{1} << 30, 0};
  const uvas_layout layout = device_test::layout_for(2);
  address_space memory(layout);
  std::vector<os::file_descriptor> files;
  files.push_back(os::create_memory_file("hpe-test", layout.size()));
  memory.set_files(std::move(files));
  memory.map(0, layout.base, granule_size);
  const os::file_descriptor host = os::create_memory_file("hpe-test", granule_size);
  memory.register_host(layout.base + granule_size, granule_size, host.get(), 0);
  tile_pool pool(1, 0, 0);
  const copy_engine engine(0, shared, memory, pool);
  const std::uint64_t begin = link_time();
  engine.copy(layout.base, layout.base + granule_size, granule_size, priority::launch);
  const link_clock& up = shared.common().host_links[0][0];
  const link_clock& down = shared.common().host_links[0][1];
  EXPECT_GE(down.busy_until, begin + 1'900'000);  // 2 MiB at 1 GiB per second take 1.95 ms
  EXPECT_LE(down.busy_until, link_time());        // the copy has returned after all bytes had arrived
  EXPECT_EQ(up.busy_until, 0U);
  // The last burst claims nothing beyond its arrival.
  EXPECT_LT(down.claimed_until[static_cast<unsigned>(priority::launch)], down.busy_until);
}

TEST(kernel_heap, agrees_with_a_model_and_takes_the_first_place_that_is_large_enough) {
  std::mt19937 random(4);
  constexpr std::size_t size = 4096;
  kernel_heap heap(size);
  void* const base = heap.allocate(1);
  heap.release(base);
  std::map<std::size_t, std::size_t> used;  // the size of each allocation by its offset, both in units of 16 bytes
  const auto gaps = [&] {
    std::map<std::size_t, std::size_t> found;
    std::size_t at = 0;
    for (const auto& [offset, units] : used) {
      if (offset > at) found[at] = offset - at;
      at = offset + units;
    }
    if (at < size / 16) found[at] = size / 16 - at;
    return found;
  };
  for (int step = 0; step < 4000; ++step) {
    if (random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % 400;
      const std::size_t units = (bytes + 15) / 16;
      auto* const made = static_cast<std::byte*>(heap.allocate(bytes));
      const auto all = gaps();
      const bool fits = std::ranges::any_of(all, [&](const auto& gap) { return gap.second >= units; });
      ASSERT_EQ(made != nullptr, fits) << bytes;
      if (made == nullptr) continue;
      const auto offset = static_cast<std::size_t>(made - static_cast<std::byte*>(base));
      ASSERT_EQ(offset % 16, 0U);
      const auto gap = std::prev(all.upper_bound(offset / 16));
      ASSERT_LE(offset / 16 + units, gap->first + gap->second);
      used[offset / 16] = units;
      EXPECT_TRUE(heap.contains(reinterpret_cast<std::uintptr_t>(made), bytes));
    } else if (!used.empty()) {
      const auto gone = std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size()));
      heap.release(static_cast<std::byte*>(base) + gone->first * 16 +
                   8);  // no effect: not the beginning of an allocation
      heap.release(static_cast<std::byte*>(base) + gone->first * 16);
      used.erase(gone);
    }
  }
  heap.release(nullptr);
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  EXPECT_TRUE(heap.contains(begin, size));
  EXPECT_FALSE(heap.contains(begin, ~std::size_t{0}));
  EXPECT_FALSE(heap.contains(begin - 1, 1));
  EXPECT_TRUE(heap.contains(begin + size - 1, 1));
}

}  // namespace
}  // namespace hpe::device::soft
