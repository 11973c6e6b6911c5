// Data larger than device memory: each test uses several times the memory of its devices.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "hpe/announce.h"
#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t device_memory = 16 * mebi;

// Variables that the runtime reads when it starts.
[[maybe_unused]] const bool environment_is_set = [] {
  ::setenv("HPE_DEVICES", "soft:2", 0);
  ::setenv("HPE_DEVICE_MEMORY", "16M", 0);
  return true;
}();

using numbers = hpe::array<std::uint32_t>;
constexpr std::size_t part = mebi / 2;  // elements: 2 MiB

void increment(const numbers& a, std::size_t first, std::size_t count, std::uint32_t by, int device = 0) {
  hpe::launch_on(device, test_kernel().increment, hpe::grid(test_tiles), {a.data() + first, count, by, 0},
                 inout(std::span(a.data() + first, count)));
}

TEST(larger, AnArrayOfFourTimesTheMemoryIsComputedInParts) {
  ASSERT_EQ(hpe::device_info(0).memory_total, device_memory);
  const numbers a(8 * device_memory / sizeof(std::uint32_t) / 2);
  std::iota(a.begin(), a.end(), 0U);
  const hpeStatistics before = hpe::statistics();
  for (std::uint32_t round = 1; round <= 3; ++round)
    for (std::size_t at = 0; at < a.size(); at += part) increment(a, at, part, round);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], i + 6) << i;
  const hpeStatistics after = hpe::statistics();
  const std::uint64_t bytes = a.size() * sizeof(std::uint32_t);
  EXPECT_GE(after.bytes_brought_in - before.bytes_brought_in, 2 * bytes);
  EXPECT_GE(after.bytes_evicted - before.bytes_evicted, 2 * bytes);
  EXPECT_GE(after.bytes_written_back - before.bytes_written_back, 2 * bytes);
  EXPECT_LE(after.bytes_written_back, after.bytes_evicted + device_memory);
  EXPECT_GT(after.evicting_ns, before.evicting_ns);
}

TEST(larger, DataThatWasOnlyReadIsGivenUpWithoutACopy) {
  const numbers a(2 * device_memory / sizeof(std::uint32_t));
  std::iota(a.begin(), a.end(), 0U);
  const numbers sum(part);
  const hpeStatistics before = hpe::statistics();
  for (int round = 0; round < 2; ++round)
    for (std::size_t at = 0; at + 2 * part <= a.size(); at += part)
      hpe::launch(test_kernel().add, hpe::grid(test_tiles), {sum.data(), a.data() + at, a.data() + at + part, part},
                  out(sum), in(std::span(a.data() + at, 2 * part)));
  for (std::size_t i = 0; i < part; ++i) ASSERT_EQ(sum[i], 2 * a.size() - 3 * part + 2 * i);
  const hpeStatistics after = hpe::statistics();
  EXPECT_GT(after.bytes_evicted - before.bytes_evicted, device_memory);
  EXPECT_LT(after.bytes_written_back - before.bytes_written_back, device_memory);
}

TEST(larger, NewMemoryReadsAsZeroWhereverItIs) {
  const numbers a(3 * device_memory / sizeof(std::uint32_t));
  const numbers used(device_memory / sizeof(std::uint32_t) / 2);
  increment(used, 0, used.size(), 5);
  for (std::size_t at = 0; at < a.size(); at += 3 * part) increment(a, at, part, 1);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], i / part % 3 == 0 ? 1U : 0U) << i;
  EXPECT_EQ(used[7], 5U);
}

// hpe copies data to the host before the data's device memory is needed. The host pages then contain these bytes when
// the allocation is freed.
TEST(larger, NewMemoryReadsAsZeroOnPagesOfDataThatWasCopiedAhead) {
  constexpr std::size_t parts = device_memory / sizeof(std::uint32_t) / part;
  std::vector<std::unique_ptr<numbers>> old;
  for (std::size_t i = 0; i < parts; ++i) {
    old.push_back(std::make_unique<numbers>(part));
    increment(*old.back(), 0, part, 7);
  }
  const numbers pushes_out_the_oldest(part);
  increment(pushes_out_the_oldest, 0, part, 1);
  while (!old.empty()) {
    old.erase(old.begin());
    const numbers fresh(part);
    for (std::size_t i = 0; i < part; ++i) ASSERT_EQ(fresh[i], 0U) << i << ", with " << old.size() << " left";
  }
}

TEST(larger, WorkWaitsForMemoryOfAnAllocationThatIsBeingFreed) {
  constexpr std::uint32_t slow = 200'000;  // microseconds
  auto leaving = std::make_unique<numbers>(device_memory / sizeof(std::uint32_t));
  const numbers arriving(device_memory / sizeof(std::uint32_t));
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {leaving->data(), leaving->size(), 1, slow},
              inout(*leaving));
  std::jthread freeing([&] { leaving.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  increment(arriving, 0, arriving.size(), 3);
  freeing.join();
  EXPECT_EQ(arriving[arriving.size() - 1], 3U);
}

TEST(larger, ALaunchThatDoesNotFitIsRefusedWithTheSizes) {
  const numbers a(2 * device_memory / sizeof(std::uint32_t));
  const increment_parameters whole{a.data(), a.size(), 1, 0};
  const hpeAccess all{a.data(), 0, HPE_INOUT};
  const hpeShape shape = hpe::grid(test_tiles);
  EXPECT_TRUE(fails(hpeLaunch(0, test_kernel().increment.get(), &shape, &whole, sizeof whole, &all, 1),
                    HPE_ERROR_OUT_OF_MEMORY, {"33554432 bytes on device 0", "16777216", "hpeAccess.size"}));
  EXPECT_TRUE(fails(hpeLaunch(0, test_kernel().increment.get(), &shape, &whole, sizeof whole, nullptr, HPE_ALL),
                    HPE_ERROR_OUT_OF_MEMORY, {"device 0", "HPE_ALL"}));
  // The data is unchanged and can still be used.
  increment(a, a.size() - part, part, 3);
  EXPECT_EQ(a[0], 0U);
  EXPECT_EQ(a[a.size() - 1], 3U);
}

TEST(larger, AllocationsBeyondAllMemoryAreRefusedWithTheSizes) {
  void* p = nullptr;
  EXPECT_TRUE(fails(hpeMalloc(&p, std::size_t{1} << 39), HPE_ERROR_OUT_OF_MEMORY,
                    {"549755813888", std::to_string(static_cast<std::size_t>(hpe::device_count()) * device_memory)}));
  EXPECT_EQ(p, nullptr);
}

TEST(larger, CopiesFillsAndPrefetchesOfMoreThanTheMemory) {
  const std::size_t count = 3 * device_memory / sizeof(std::uint32_t);
  const numbers a(count);
  const numbers b(count, hpe::on_device(hpe::device_count() - 1));
  std::vector<std::uint32_t> source(count);
  std::iota(source.begin(), source.end(), 1U);
  const std::size_t bytes = count * sizeof(std::uint32_t);
  ASSERT_EQ(hpeMemcpy(a.data(), source.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_EQ(hpePrefetch(a.data(), bytes, 0), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_EQ(hpeMemcpy(b.data(), a.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_EQ(hpeMemset(a.data(), 0xff, bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  increment(a, 0, part, 1);
  std::vector<std::uint32_t> result(count);
  ASSERT_EQ(hpeMemcpy(result.data(), b.data(), bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_EQ(result, source);
  EXPECT_EQ(a[0], 0U);
  EXPECT_EQ(a[count - 1], ~0U);
}

TEST(larger, StripedArraysAndTeams) {
  const std::size_t devices = static_cast<std::size_t>(hpe::device_count());
  const std::size_t count = 4 * devices * device_memory / sizeof(std::uint32_t);
  const numbers a(count, hpe::block_distribution());
  std::iota(a.begin(), a.end(), 0U);
  const std::size_t each = count / devices;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t at = 0; at < each; at += part) {
      std::vector<hpe::team_member<increment_parameters>> members;
      std::vector<hpeAccess> accesses;
      for (std::size_t d = 0; d < devices; ++d) {
        std::uint32_t* const first = a.data() + d * each + at;
        members.push_back({static_cast<int>(d), hpe::grid(1), {first, part, 1, 0}});
        accesses.push_back(inout(std::span(first, part)));
      }
      hpe::launch_team(test_kernel().increment, members, accesses);
    }
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(a[i], i + 2) << i;
}

TEST(larger, TheHostWorksOnTheDataMeanwhile) {
  const numbers a(4 * device_memory / sizeof(std::uint32_t));
  std::mt19937 random(5);
  std::vector<std::uint32_t> expected(a.size() / part);
  for (int step = 0; step < 400; ++step) {
    const std::size_t n = random() % expected.size();
    if (random() % 3 != 0) {
      increment(a, n * part, part, 1);
      ++expected[n];
    } else {
      const std::size_t at = n * part + random() % part;
      ASSERT_EQ(a[at], expected[n]) << "step " << step;
      for (std::size_t i = n * part; i < (n + 1) * part; i += 1000) a[i] = a[i] + 0;
    }
  }
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], expected[i / part]) << i;
}

TEST(larger, SeveralThreadsWhoseDataTogetherDoesNotFitAllGoOn) {
  constexpr int threads = 4;
  constexpr std::size_t each = device_memory / sizeof(std::uint32_t) / 8 * 6;  // elements; three quarters of the memory
  std::vector<numbers> data;
  for (int t = 0; t < threads; ++t) data.emplace_back(each);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int round = 0; round < 12; ++round) increment(data[static_cast<std::size_t>(t)], 0, each, 1);
    });
  for (std::thread& t : running) t.join();
  for (const numbers& d : data)
    for (std::size_t i = 0; i < each; ++i) ASSERT_EQ(d[i], 12U) << i;
}

TEST(larger, AcquiredDataStaysOnTheDevice) {
  const numbers a(5 * part), b(5 * part);  // 10 MiB each
  increment(a, 0, a.size(), 1);
  const hpeAccess uses{a.data(), a.size() * sizeof(std::uint32_t), HPE_INOUT};
  hpeAnnouncement announced = nullptr;
  ASSERT_EQ(hpeAcquire(&announced, &uses, 1), HPE_SUCCESS) << hpeGetLastErrorMessage();
  const std::uint64_t evicted = hpe::statistics().bytes_evicted;
  try {
    increment(b, 0, b.size(), 1);
    ADD_FAILURE() << "there is no room for the data";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_EQ(hpe::statistics().bytes_evicted, evicted);
  std::thread mover([&] { hpe::check(hpeMigrate(a.data(), 1)); });  // waits
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(hpe::pointer_info(a.data()).device, 0);
  EXPECT_EQ(hpeAnnouncedEnd(announced), HPE_SUCCESS);
  mover.join();
  EXPECT_EQ(hpe::pointer_info(a.data()).device, 1);
  hpe::check(hpeMigrate(a.data(), 0));
  increment(b, 0, b.size(), 1);
  EXPECT_EQ(a[3], 1U);
  EXPECT_EQ(b[3], 1U);
}

TEST(larger, MigrationToADeviceWithoutRoom) {
  if (hpe::device_count() < 2) GTEST_SKIP() << "two devices are needed";
  const numbers full(device_memory / sizeof(std::uint32_t), hpe::on_device(1));
  increment(full, 0, full.size(), 1, 1);
  const numbers moved(2 * part);
  increment(moved, 0, moved.size(), 2);
  ASSERT_EQ(hpeMigrate(moved.data(), 1), HPE_SUCCESS) << hpeGetLastErrorMessage();
  increment(moved, 0, moved.size(), 3, 1);
  EXPECT_EQ(moved[1], 5U);
  EXPECT_EQ(full[1], 1U);
}

}  // namespace
