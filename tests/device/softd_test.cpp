// The parts of a device's process, and the memory that it shares with its owner, each tested alone.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/output.h"
#include "runtime/device/soft/shared/ptx_layout.h"
#include "runtime/device/soft/shared/timeline.h"
#include "runtime/device/soft/softd/copy.h"
#include "runtime/device/soft/softd/guard.h"
#include "runtime/device/soft/softd/heap.h"
#include "runtime/device/soft/softd/kernels.h"
#include "runtime/device/soft/softd/meter.h"
#include "runtime/device/soft/softd/pool.h"
#include "runtime/os/virtual_memory.h"
#include "tests/device/layout.h"

namespace hpe::device::soft {
namespace {

using namespace std::chrono_literals;

// The weights of samples add up to the blocks of a grid, and blocks at its edges stand for edges only.
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
  // Three neighbours are released in different orders: alone, before a free one, behind a free one, between two.
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    std::array<void*, 3> pieces{};
    for (void*& piece : pieces) piece = heap.allocate(quarter);
    void* const last = heap.allocate(quarter);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(heap.allocate(16), nullptr);
    for (const int n : order) heap.release(pieces[static_cast<std::size_t>(n)]);
    void* const merged = heap.allocate(3 * quarter);
    EXPECT_EQ(merged, pieces[0]);
    heap.release(last);
    heap.release(merged);
    void* const all = heap.allocate(size);
    EXPECT_NE(all, nullptr);
    heap.release(all);
    heap.release(all);  // `all` is no longer an allocation
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

// A place at which every access raises SIGBUS: it is mapped behind the end of its file.
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
      for (;;) relax();
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
  std::byte* volatile const nowhere = reinterpret_cast<std::byte*>(0x40);  // volatile: the compiler must not know
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      auto body = [&] {
        --waiting;
        while (waiting != 0) relax();
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
  for (;;) relax();
}

TEST(tile_pool, stops_launches_of_teams_that_lost_a_device) {
  install_crash_handlers();
  auto& pool = *new tile_pool(2, 0, 0);  // its threads live as long as the process
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

// Launches of several streams share the helpers, and meanwhile a device that is not in their team may be lost.
TEST(tile_pool, runs_every_tile_of_launches_at_the_same_time) {
  install_crash_handlers();
  auto& pool = *new tile_pool(3, 0, 0);  // its threads live as long as the process
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
  static auto& pool = *new tile_pool(1, 0, 0);  // its threads live as long as the process
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

TEST(kernel_table, is_read_while_kernels_are_found) {
  kernel_table table;
  table.load(0, SOFTD_TEST_KERNELS);
  table.find(0, 0, "add");
  std::atomic<bool> over{false};
  std::thread launching([&] {
    while (!over) EXPECT_EQ(table.at(0).name, "add");
  });
  for (std::uint32_t n = 1; n < 40000; ++n) table.find(0, n * 7919 % 65521, "add");  // all different, in no order
  over = true;
  launching.join();
  EXPECT_THROW((void)table.at(70000), error);
  EXPECT_THROW(table.find(0, 70000, "no_such_kernel"), error);
  EXPECT_THROW(table.find(1, 70000, "add"), error);
}

TEST(address_table, keeps_ranges_apart_and_divides_them) {
  address_table table;
  table.insert(0x1000, 0x1000, {0, 0});
  table.insert(0x3000, 0x1000, {0, 0});
  table.insert(0x2000, 0x1000, {0, 0});
  EXPECT_EQ(table.find(0x1fff)->end, 0x2000U);
  EXPECT_THROW(table.insert(0x3fff, 1, {0, 0}), error);
  EXPECT_THROW(table.insert(0xfff, 2, {0, 0}), error);
  EXPECT_THROW(table.insert(0x8000, 0, {0, 0}), error);
  table.insert(0x4000, 0x1000, {1, 0});
  EXPECT_EQ(table.find(0x3fff)->end, 0x4000U);
  EXPECT_THROW(table.erase(0x3000, 0x1800, 0), error);
  table.erase(0x2000, 0x800, 0);
  EXPECT_FALSE(table.find(0x2000));
  EXPECT_EQ(table.find(0x1000)->end, 0x2000U);
  EXPECT_EQ(table.find(0x2800)->end, 0x3000U);
  EXPECT_EQ(table.find(0x4000)->where.device, 1);
}

TEST(failure_log, keeps_the_last_ones_whole) {
  const auto log = std::make_unique<failure_log>();
  constexpr std::uint64_t all = failure_log::kept + 10;
  // The later messages are shorter, and the first is too long for its place.
  for (std::uint64_t n = 0; n < all; ++n)
    log->append({n + 1, 1000 + n, HPE_ERROR_LAUNCH_FAILED, std::string(2000 / (n + 1), 'x') + fmt::format("{}", n),
                 n % 2 == 0 ? HPE_FAULT_NONE : HPE_FAULT_ADDRESS});
  EXPECT_EQ(log->count(), all);
  EXPECT_EQ(log->first_kept(), all - failure_log::kept);
  EXPECT_FALSE(log->at(log->first_kept() - 1));
  EXPECT_FALSE(log->at(all));
  EXPECT_FALSE(log->find(1));
  for (std::uint64_t n = log->first_kept(); n < all; ++n) {
    const auto found = log->find(n + 1);
    ASSERT_TRUE(found && log->at(n)) << n;
    EXPECT_EQ(found->value, n + 1);
    EXPECT_EQ(found->order, 1000 + n);
    EXPECT_EQ(found->status, HPE_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(found->sentence, std::string(2000 / (n + 1), 'x') + fmt::format("{}", n));
    EXPECT_EQ(found->fault, n % 2 == 0 ? HPE_FAULT_NONE : HPE_FAULT_ADDRESS);
  }
  failure_log other;
  other.append({1, 1, HPE_ERROR_LAUNCH_FAILED, std::string(5000, 'x'), HPE_FAULT_NONE});
  EXPECT_GT(other.find(1)->sentence.size(), 500U);
  EXPECT_LT(other.find(1)->sentence.size(), 5000U);
}

class output : public testing::Test {
 protected:
  static constexpr std::uint64_t header_bytes = 24;

  fabric shared{topology{1, 1}};
  output_reader reader{shared};
  std::atomic<std::uint64_t>& written = shared.status(0).output;
  output_writer writer{os::file_descriptor(::dup(reader.file(0))), written};
};

TEST_F(output, comes_in_the_order_of_launches) {
  writer.append(2, "second", false);
  writer.append(1, "first", true);
  const auto taken = reader.take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].text, "first");
  EXPECT_TRUE(taken[0].is_error);
  EXPECT_EQ(taken[1].text, "second");
  writer.append(3, "third", false);
  EXPECT_EQ(reader.take().at(0).text, "third");
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, whose_count_is_wrong_ends) {
  writer.append(1, "first", false);
  for (const std::uint64_t count : {written.load() + 1, ~std::uint64_t{0}}) {
    written = count;
    EXPECT_TRUE(reader.take().empty());
  }
  written = sizeof(std::uint64_t);
  writer.append(2, "second", false);
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, that_goes_backwards_ends) {
  writer.append(1, "first", false);
  EXPECT_EQ(reader.take().size(), 1U);
  written = header_bytes;
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, whose_sizes_are_wrong_ends) {
  for (const std::uint64_t size : {std::uint64_t{6}, ~std::uint64_t{0}, ~std::uint64_t{0} - header_bytes + 1}) {
    fabric own{topology{1, 1}};
    output_reader from(own);
    output_writer to(os::file_descriptor(::dup(from.file(0))), own.status(0).output);
    to.append(1, "first", false);
    ASSERT_EQ(::pwrite(from.file(0), &size, sizeof size, 8), 8);
    EXPECT_TRUE(from.take().empty()) << size;
    EXPECT_TRUE(from.take().empty()) << size;
  }
}

TEST_F(output, that_ends_within_a_header_ends) {
  writer.append(1, "first", false);
  written = header_bytes - 1;
  EXPECT_TRUE(reader.take().empty());
}

TEST(link, is_reserved_for_the_time_that_a_piece_takes_and_no_longer) {
  link_clock first, second;
  const std::array<link_clock*, 2> path{&first, &second};
  const link_limit limit{1'000'000'000, 0};  // a byte per nanosecond
  const std::uint64_t ready = link_time() + 1'000'000;
  EXPECT_EQ(reserve_path(path, limit, 5000, ready, priority::launch, false), ready + 5000);
  EXPECT_EQ(first.busy_until, ready + 5000);
  EXPECT_EQ(second.busy_until, ready + 5000);
  // The next piece follows; one that is ready later begins later.
  EXPECT_EQ(reserve_path(path, limit, 1000, ready, priority::launch, false), ready + 6000);
  EXPECT_EQ(reserve_path(path, limit, 1000, ready + 50000, priority::launch, false), ready + 51000);
  for (const auto& claim : first.claimed_until) EXPECT_EQ(claim, 0U);
}

TEST(link, is_claimed_only_by_who_has_more_to_send) {
  link_clock clock;
  const std::array<link_clock*, 1> path{&clock};
  const link_limit limit{1'000'000'000, 0};
  const std::uint64_t ready = link_time();
  const std::uint64_t arrival = reserve_path(path, limit, 1000, ready, priority::launch, true);
  EXPECT_GT(clock.claimed_until[static_cast<unsigned>(priority::launch)], arrival);
  EXPECT_EQ(clock.claimed_until[static_cast<unsigned>(priority::waiting_host)], 0U);
  // The more urgent does not wait for the claim.
  EXPECT_EQ(reserve_path(path, limit, 1000, arrival, priority::waiting_host, false), arrival + 1000);
  // The less urgent one does.
  EXPECT_GE(reserve_path(path, limit, 1000, ready, priority::rolling, false),
            clock.claimed_until[static_cast<unsigned>(priority::launch)]);
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
  EXPECT_GE(down.busy_until, begin + 1'900'000);  // 2 MiB at 1 GiB per second are 1.95 ms
  EXPECT_LE(down.busy_until, link_time());        // the copy returned when all bytes had arrived
  EXPECT_EQ(up.busy_until, 0U);
  // The last piece claims nothing beyond its arrival.
  EXPECT_LT(down.claimed_until[static_cast<unsigned>(priority::launch)], down.busy_until);
}

}  // namespace
}  // namespace hpe::device::soft
