// One pointer on the host and on devices: each side reads the bytes that the other side wrote, in program order and
// without copy calls.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/os/used_mappings.h"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;

constexpr std::size_t mebi = std::size_t{1} << 20;

class sizes : public testing::TestWithParam<std::size_t> {};

TEST_P(sizes, KernelWritesHostReads) {
  const std::size_t n = GetParam();
  for (int d = 0; d < hpe::device_count(); ++d) {
    const hpe::array<std::uint32_t> a(n, hpe::on_device(d));
    hpe::launch_on(d, test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 7}, out(a));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], 7 + i) << "device " << d;
  }
}

TEST_P(sizes, HostWritesKernelReadsHostReads) {
  const std::size_t n = GetParam();
  const hpe::array<std::uint32_t> a(n);
  const hpe::array<std::uint32_t> b(n);
  const hpe::array<std::uint32_t> c(n);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < n; ++i) a[i] = static_cast<std::uint32_t>(i) * (round + 1);
    std::iota(b.begin(), b.end(), round);
    hpe::launch(test_kernel().add, hpe::grid(test_tiles), {c.data(), a.data(), b.data(), n}, out(c), in(a), in(b));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(c[i], i * (round + 1) + i + round);
  }
}

TEST_P(sizes, HostAndKernelTakeTurns) {
  const std::size_t n = GetParam();
  const hpe::array<std::uint32_t> a(n);
  std::iota(a.begin(), a.end(), 0U);
  for (std::uint32_t turn = 0; turn < 6; ++turn) {
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), n, 10, 0}, inout(a));
    for (std::size_t i = turn; i < n; i += 1000) a[i] += 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t expected = static_cast<std::uint32_t>(i) + 60;
    for (std::uint32_t turn = 0; turn < 6; ++turn) expected += i >= turn && (i - turn) % 1000 == 0 ? 1 : 0;
    ASSERT_EQ(a[i], expected) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, sizes,
                         testing::Values(1, 63, 1024, 65536, 65537, 300000, mebi, 2 * mebi + 3, 5 * mebi + 77));

TEST(coherence, NewMemoryReadsAsZero) {
  const hpe::array<std::uint32_t> a(mebi);
  for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 0U);
}

// New allocations reuse the host pages of freed allocations of the same size.
TEST(coherence, MemoryThatWasUsedBeforeReadsAsZero) {
  for (const std::size_t n : {3 * mebi + 5, 300000UL}) {
    for (int round = 0; round < 12; ++round) {
      const hpe::array<std::uint32_t> a(n, hpe::on_device(0));
      std::vector<std::uint32_t> seen(n, 1);
      std::uint32_t written = 0;
      switch (round % 4) {
        case 0: std::copy(a.begin(), a.end(), seen.begin()); break;
        case 1: hpe::copy(seen.data(), a.data(), n * sizeof seen[0]); break;
        case 2:  // a launch uploads whole blocks: the host's bytes and the zeros around them
          a[n / 2] = 9;
          hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 0, 1, 0}, inout(a));
          hpe::copy(seen.data(), a.data(), n * sizeof seen[0]);
          written = 9;
          break;
        default:
          hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 0, 1, 0}, inout(a));
          std::copy(a.begin(), a.end(), seen.begin());
      }
      ASSERT_EQ(seen[n / 2], written) << "round " << round;
      seen[n / 2] = 0;
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 0U), static_cast<std::ptrdiff_t>(n)) << "round " << round;
      // Writes values on the host and at the home that the next round must not see.
      std::iota(a.begin(), a.end(), 1U);
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
      ASSERT_EQ(a[n - 1], n + 1);
    }
  }
}

TEST(coherence, SmallObjectsAreClearedWhenReused) {
  for (int round = 0; round < 50; ++round) {
    const hpe::array<std::uint32_t> a(100);
    for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 0U);
    hpe::launch(test_kernel().fill, hpe::grid(1), {a.data(), 100, 5}, out(a));
    ASSERT_EQ(a[99], 104U);
  }
}

TEST(coherence, AHostAccessWaitsForTheKernelThatWrites) {
  const hpe::array<std::uint32_t> a(1000);
  hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1000, 3, 200000}, inout(a));
  EXPECT_EQ(a[999], 3U);
}

TEST(coherence, TheHostMayOverwriteWhatAKernelStillReads) {
  const std::size_t n = mebi;
  const hpe::array<std::uint32_t> source(n);
  const hpe::array<std::uint32_t> slow(1000);
  const hpe::array<std::uint32_t> sum(n);
  std::iota(source.begin(), source.end(), 0U);
  hpe::launch(test_kernel().increment, hpe::grid(1), {slow.data(), 1000, 1, 100000}, inout(slow), in(source));
  std::fill(source.begin(), source.end(), 1U);
  hpe::launch(test_kernel().add, hpe::grid(test_tiles), {sum.data(), source.data(), source.data(), n}, out(sum),
              in(source));
  for (const std::uint32_t x : sum.span()) ASSERT_EQ(x, 2U);
}

// An upload behind a writer waits for the kernels that read the bytes that the upload overwrites.
TEST(coherence, RollingUploadsLeaveWhatAKernelStillReads) {
  const std::size_t n = 8 * mebi;
  const hpe::array<std::uint32_t> source(n);
  const hpe::array<std::uint32_t> sum(n);
  std::iota(source.begin(), source.end(), 0U);
  hpe::launch(test_kernel().increment, hpe::grid(1), {sum.data(), 1, 1, 200000}, inout(sum));
  hpe::launch(test_kernel().add, hpe::grid(test_tiles), {sum.data(), source.data(), source.data(), n}, out(sum),
              in(source));
  hpe::check(hpeResetStatistics());
  std::fill(source.begin(), source.end(), 1U);
  EXPECT_GT(hpe::statistics().blocks_rolled, 0U);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], 2 * i);
}

TEST(coherence, KernelsOnDifferentDevicesAreOrderedByData) {
  const std::size_t n = 3 * mebi;
  const hpe::array<std::uint32_t> a(n, hpe::on_device(0));
  const int devices = hpe::device_count();
  for (int i = 0; i < 20; ++i)
    hpe::launch_on(i % devices, test_kernel().increment, hpe::grid(test_tiles),
                   {a.data(), n, 1, static_cast<std::uint32_t>(i % 3) * 1000}, inout(a));
  for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 20U);
}

TEST(coherence, AStripedArrayIsOneRange) {
  const std::size_t n = 8 * mebi + 5;
  for (const auto& where :
       {hpe::block_distribution(), hpe::cyclic_distribution(), hpe::block_cyclic_distribution(4 * mebi)}) {
    const hpe::array<std::uint32_t> a(n, where);
    const int devices = hpe::device_count();
    for (int d = 0; d < devices; ++d) {
      const std::size_t begin = n * d / devices;
      const std::size_t end = n * (d + 1) / devices;
      hpe::launch_on(d, test_kernel().fill, hpe::grid(test_tiles),
                     {a.data() + begin, end - begin, static_cast<std::uint32_t>(begin)},
                     out(a.subspan(begin, end - begin)));
    }
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i);
    std::fill(a.begin(), a.end(), 2U);
    hpe::launch_on(devices - 1, test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
    for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 3U);
  }
}

TEST(coherence, HostMemoryIsSharedByAll) {
  const hpe::array<std::uint32_t> a(100000, hpe::on_host());
  std::iota(a.begin(), a.end(), 0U);
  for (int d = 0; d < hpe::device_count(); ++d)
    hpe::launch_on(d, test_kernel().increment, hpe::grid(1), {a.data(), a.size(), 1, 20000}, inout(a));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], i + hpe::device_count());
}

TEST(coherence, AWriterIsUploadedBehindAgainAfterALaunch) {
  const hpe::array<std::uint32_t> a(std::size_t{8} << 20);
  const auto uploaded_behind_a_pass = [&](std::uint32_t value) {
    const std::uint64_t before = hpe::statistics().bytes_to_device;
    std::fill(a.span().begin(), a.span().end(), value);
    return hpe::statistics().bytes_to_device - before;
  };
  EXPECT_GT(uploaded_behind_a_pass(1), a.size() * 2) << "half of the bytes";
  // If a writer returns to uploaded blocks, hpe stops the rolling upload.
  int passes = 0;
  while (uploaded_behind_a_pass(2) != 0) ASSERT_LT(++passes, 50);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, inout(a));
  EXPECT_GT(uploaded_behind_a_pass(3), a.size() * 2) << "the launch has reset the count of returns";
}

TEST(coherence, SynchronizingWaitsForKernels) {
  constexpr std::chrono::microseconds duration{50000};
  const hpe::array<std::uint32_t> a(1, hpe::on_host());
  a[0] = 5;
  const int last = hpe::device_count() - 1;
  const auto add_one_late = [&](int device) {
    hpe::launch_on(device, test_kernel().increment, hpe::grid(1),
                   {a.data(), 1, 1, static_cast<std::uint32_t>(duration.count())}, inout(a));
  };
  // A touch of `a` would also wait for the kernel, so only the elapsed time shows whether the call has waited.
  auto begin = std::chrono::steady_clock::now();
  add_one_late(0);
  hpe::synchronize();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, duration);
  EXPECT_EQ(a[0], 6U);
  begin = std::chrono::steady_clock::now();
  add_one_late(last);
  hpe::synchronize(last);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, duration);
  EXPECT_EQ(a[0], 7U);
}

TEST(coherence, CopiesOfHostMemoryWaitForKernels) {
  const hpe::array<std::uint32_t> a(1, hpe::on_host());
  const hpe::array<std::uint32_t> other(1, hpe::on_host());
  const hpe::array<std::uint32_t> on_device(1);
  const auto set_then_add_one_late = [&](std::uint32_t value) {
    a[0] = value;
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1, 1, 50000}, inout(a));
  };
  std::uint32_t ordinary = 100;
  set_then_add_one_late(1);
  hpe::copy(a.data(), &ordinary, 4);
  hpe::synchronize();
  EXPECT_EQ(a[0], 100U);
  set_then_add_one_late(2);
  hpe::copy(&ordinary, a.data(), 4);
  EXPECT_EQ(ordinary, 3U);
  set_then_add_one_late(4);
  hpe::copy(other.data(), a.data(), 4);
  EXPECT_EQ(other[0], 5U);
  other[0] = 200;
  set_then_add_one_late(6);
  hpe::copy(a.data(), other.data(), 4);
  hpe::synchronize();
  EXPECT_EQ(a[0], 200U);
  set_then_add_one_late(8);
  hpe::copy(on_device.data(), a.data(), 4);
  EXPECT_EQ(on_device[0], 9U);
  on_device[0] = 300;
  set_then_add_one_late(10);
  hpe::copy(a.data(), on_device.data(), 4);
  hpe::synchronize();
  EXPECT_EQ(a[0], 300U);
  set_then_add_one_late(12);
  hpe::check(hpeMemset(a.data(), 1, 4));
  hpe::synchronize();
  EXPECT_EQ(a[0], 0x01010101U);
}

TEST(coherence, UndeclaredAccessesSeeEverything) {
  const hpe::array<std::uint32_t> a(mebi);
  const hpe::array<std::uint32_t> b(1000);
  std::fill(a.begin(), a.end(), 4U);
  const increment_parameters p{a.data(), a.size(), 1, 0};
  const hpeShape shape = hpe::grid(1);
  hpe::check(hpeLaunch(HPE_CURRENT_DEVICE, test_kernel().increment.get(), &shape, &p, sizeof p, nullptr, HPE_ALL));
  for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 5U);
}

TEST(coherence, AdviceChangesNoMeaning) {
  const std::size_t n = 4 * mebi;
  for (const hpeAdvice advice : {HPE_ADVISE_LAZY, HPE_ADVISE_ROLLING, HPE_ADVISE_READ_MOSTLY, HPE_ADVISE_DEFAULT}) {
    const hpe::array<std::uint32_t> a(n);
    hpe::advise(a.data(), advice);
    std::iota(a.begin(), a.end(), 1U);
    hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i + 2) << advice;
  }
}

TEST(coherence, WriteOnlyFetchesNothing) {
  const std::size_t n = 4 * mebi;
  const hpe::array<std::uint32_t> a(n);
  hpe::advise(a.data(), HPE_ADVISE_WRITE_ONLY);
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 9}, out(a));
  hpe::synchronize();
  hpe::check(hpeResetStatistics());
  std::iota(a.begin(), a.end(), 1U);
  EXPECT_EQ(hpe::statistics().bytes_to_host, 0U);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  hpe::advise(a.data(), HPE_ADVISE_DEFAULT);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i + 2);
}

TEST(coherence, RollingUploadsBehindASequentialWriter) {
  const std::size_t n = 16 * mebi;
  const hpe::array<std::uint32_t> a(n);
  hpe::check(hpeResetStatistics());
  std::iota(a.begin(), a.end(), 1U);
  EXPECT_GT(hpe::statistics().blocks_rolled, 10U);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i + 2);
}

TEST(coherence, PrefetchRunsAheadOfASequentialReader) {
  const std::size_t n = 16 * mebi;
  const hpe::array<std::uint32_t> a(n);
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 0}, out(a));
  hpe::check(hpeResetStatistics());
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i);
  const hpeStatistics s = hpe::statistics();
  const std::size_t blocks = n * 4 / hpe::pointer_info(a.data()).block;
  EXPECT_GT(s.blocks_prefetched, blocks * 3 / 4);
  EXPECT_LT(s.faults_read, blocks / 2);
  EXPECT_EQ(s.bytes_to_host, n * 4);
}

// If the host touches single blocks far apart, hpe makes the blocks of the array smaller, so that later touches move
// less data.
TEST(coherence, AHostThatReadsHereAndThereFetchesLess) {
  const std::size_t n = 16 * mebi;
  const hpe::array<std::uint32_t> a(n);
  const std::size_t block = hpe::pointer_info(a.data()).block / sizeof(std::uint32_t);
  std::vector<std::size_t> places;
  for (std::size_t at = block / 2; at < n; at += 3 * block) places.push_back(at);
  std::shuffle(places.begin(), places.end(), std::mt19937(5));
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 0}, out(a));
  for (const std::size_t at : places) ASSERT_EQ(a[at], at);
  const std::size_t smaller = hpe::pointer_info(a.data()).block / sizeof(std::uint32_t);
  EXPECT_LT(smaller, block);

  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  hpe::check(hpeResetStatistics());
  for (const std::size_t at : places) a[at] += 1;
  EXPECT_EQ(hpe::statistics().bytes_to_host, places.size() * smaller * sizeof(std::uint32_t));
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  for (std::size_t i = 0; i < n; ++i) {
    const bool touched = i % (3 * block) == block / 2;
    ASSERT_EQ(a[i], i + 2 + (touched ? 1 : 0)) << i;
  }
}

// While the data of a single block is being fetched, the view of this block is a separate mapping.
TEST(coherence, BlocksThatWereReadHereAndThereShareOneMappingAgain) {
  const std::size_t n = 16 * mebi / sizeof(std::uint32_t);
  const hpe::array<std::uint32_t> a(n);
  const std::size_t block = hpe::pointer_info(a.data()).block / sizeof(std::uint32_t);
  const auto kernel_writes = [&] {
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 7}, out(a));
    hpe::synchronize();
  };
  kernel_writes();
  for (std::size_t i = 0; i < n; i += 5 * block) ASSERT_EQ(a[i], 7 + i);
  EXPECT_GT(mappings_in(a.data(), a.size() * sizeof a[0]), n / block / 5);
  kernel_writes();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (mappings_in(a.data(), a.size() * sizeof a[0]) > 1 && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();  // waits for the thread of the runtime that handled the last read
  EXPECT_EQ(mappings_in(a.data(), a.size() * sizeof a[0]), 1U);
}

TEST(coherence, MigrationKeepsAddressAndContents) {
  if (hpe::device_count() < 2) GTEST_SKIP() << "needs two devices";
  const std::size_t n = 3 * mebi;
  const hpe::array<std::uint32_t> a(n, hpe::on_device(0));
  hpe::launch_on(0, test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 3}, out(a));
  a[5] = 1;
  hpe::migrate(a.data(), 1);
  EXPECT_EQ(hpe::pointer_info(a.data()).device, 1);
  hpe::launch_on(1, test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i == 5 ? 2 : i + 4);
}

TEST(coherence, DevicesThatReachEachOtherMoveDataWithoutTheHost) {
  if (hpe::device_count() < 2) GTEST_SKIP() << "needs two devices";
  if ((hpe::device_info(0).peers & 2U) == 0) GTEST_SKIP() << "needs devices that reach each other";
  const std::size_t n = 3 * mebi;
  const hpe::array<std::uint32_t> a(n, hpe::on_device(0));
  hpe::launch_on(0, test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 3}, out(a));
  a[5] = 1;                    // the valid copy of this block is on the host
  EXPECT_EQ(a[n - 1], n + 2);  // the last block is valid on both sides
  hpe::synchronize();
  hpe::check(hpeResetStatistics());
  hpe::migrate(a.data(), 1);
  EXPECT_EQ(hpe::statistics().bytes_to_host, 0U);
  EXPECT_GE(hpe::statistics().bytes_peer, 4 * n);
  hpe::launch_on(1, test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i == 5 ? 2 : i + 4);
}

TEST(coherence, ThreadsHandDataOver) {
  const std::size_t n = mebi;
  const hpe::array<std::uint32_t> a(n);
  for (std::uint32_t round = 0; round < 5; ++round) {
    std::thread([&] {
      hpe::set_device(static_cast<int>(round) % hpe::device_count());
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 1000}, inout(a));
    }).join();
    std::thread([&] {
      for (std::uint32_t& x : a.span()) ++x;
    }).join();
  }
  for (const std::uint32_t x : a.span()) ASSERT_EQ(x, 10U);
}

}  // namespace
