// If the operating system allows no more mappings, hpe keeps each allocation coherent as a whole, and the data stays
// correct.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/os/used_mappings.h"

namespace {

using hpe::inout;
using hpe::out;

constexpr std::size_t count = std::size_t{4} << 20;  // elements: 16 MiB
constexpr std::size_t block = 64 * 1024 / sizeof(std::uint32_t);
// The distance of two touches in blocks. It is so large that the touches are no sequential walk, and that hpe does not
// open their blocks together.
constexpr std::size_t step = 5;

// The number of mappings that the test itself needs.
constexpr std::size_t spare = 40;

std::uint64_t degraded() {
  hpeStatistics s{};
  hpe::check(hpeGetStatistics(&s));
  return s.degraded;
}

class degradation : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (most_mappings() > 1 << 20)
      GTEST_SKIP() << "vm.max_map_count allows so many mappings that using them up would take too long";
    a = hpe::array<std::uint32_t>(count,
                                  GetParam() ? hpe::placement::striped(HPE_DISTRIBUTE_CYCLIC) : hpe::placement());
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), count, 1}, out(a));
    hpe::check(hpeSynchronize());
    before = degraded();
  }
  void expect_all(std::uint32_t more) const {
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(a[i], i + more) << i;
  }

  hpe::array<std::uint32_t> a;
  std::uint64_t before = 0;
};

TEST_P(degradation, a_host_that_reads_here_and_there) {
  const used_mappings nothing_left(spare);
  for (std::size_t b = 1; b < count / block; b += step) ASSERT_EQ(a[b * block], b * block + 1);
  EXPECT_EQ(degraded(), before + 1);
  expect_all(1);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), count, 1, 0}, inout(a));
    expect_all(1 + round);
  }
}

TEST_P(degradation, a_host_that_writes_here_and_there) {
  const used_mappings nothing_left(spare);
  for (std::size_t b = 1; b < count / block; b += step) a[b * block] += 5;
  EXPECT_EQ(degraded(), before + 1);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), count, 1, 0}, inout(a));
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(a[i], i + 2 + (i % block == 0 && i / block % step == 1 ? 5 : 0)) << i;
}

TEST_P(degradation, launches_on_parts_of_what_the_host_wrote) {
  for (std::size_t i = 0; i < count; ++i) a[i] += 1;
  const used_mappings nothing_left(spare);
  for (std::size_t b = 1; b < count / block; b += step) {
    const auto part = a.subspan(b * block, block);
    hpe::launch(test_kernel().increment, hpe::grid(1), {part.data(), block, 10, 0}, inout(part));
  }
  EXPECT_EQ(degraded(), before + 1);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(a[i], i + 2 + (i / block % step == 1 ? 10 : 0)) << i;
}

TEST_P(degradation, fetches_that_launches_made_useless) {
  const used_mappings nothing_left(spare);
  for (std::size_t b = 1; b < count / block; b += step) ASSERT_EQ(a[b * block], b * block + 1);
  ASSERT_EQ(degraded(), before + 1);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    // The launch uses one end of the array during the prefetch; then the host writes the other end.
    hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), count, 1, 0}, inout(a));
    hpe::check(hpePrefetch(a.data(), 0, HPE_HOST));
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1, 1, 0}, inout(a.subspan(0, 1)));
    a[count - 1] += 1;
    ASSERT_EQ(a[0], 1 + 2 * round);
    ASSERT_EQ(a[count - 1], count + 2 * round);
    ASSERT_EQ(a[count / 2], count / 2 + 1 + round);
  }
}

TEST(degraded_stripes, a_useless_fetch_from_one_home_is_waited_for) {
  if (most_mappings() > 1 << 20)
    GTEST_SKIP() << "vm.max_map_count allows so many mappings that using them up would take too long";
  // The fetch makes a copy from each of two homes. The copy from the second home is late, because a long prefetch is
  // ahead of it.
  const hpe::array<std::uint32_t> a(count, hpe::block_distribution({0, 1}));
  const hpe::array<std::uint32_t> far(16 * count, hpe::on_device(1));
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), count, 1}, out(a));
  const std::uint64_t before = degraded();
  const used_mappings nothing_left(spare);
  for (std::size_t b = 1; b < count / block; b += step) ASSERT_EQ(a[b * block], b * block + 1);
  ASSERT_EQ(degraded(), before + 1);

  for (std::uint32_t round = 1; round <= 3; ++round) {
    hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), count, 1, 0}, inout(a));
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {far.data(), far.size(), 1}, out(far));
    hpe::check(hpeSynchronize());
    hpe::check(hpePrefetch(far.data(), 0, HPE_HOST));
    hpe::check(hpePrefetch(a.data(), 0, HPE_HOST));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long enough that the prefetches have begun
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), 1, 1, 0}, inout(a.subspan(0, 1)));
    for (std::size_t i = count / 2; i < count; i += 1024) a[i] += 1;
    hpe::check(hpeSynchronize());  // all fetches have ended
    for (std::size_t i = count / 2; i < count; i += 1024) ASSERT_EQ(a[i], i + 1 + 2 * round) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, degradation, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "striped" : "one_home"); });

}  // namespace
