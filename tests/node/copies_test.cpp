// Copies from memory of another process.

#include <random>

#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

TEST(Copies, BetweenDevicesOfTwoProcesses) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(3 * MiB, 1);
  a.fill(from, 0, 3 * MiB, 7);
  const hpeExport handle = a.begin(from, 0, 3 * MiB);
  EXPECT_TRUE(b.reachable(handle));
  const std::uint64_t to = b.allocate(3 * MiB, 0);
  b.fill(to, 0, 3 * MiB, 8);
  const std::uint64_t staged = b.count(order::kind::statistics);
  ASSERT_EQ(b.copy(to, 0, handle, 0, 3 * MiB).status, HPE_SUCCESS);
  EXPECT_EQ(b.count(order::kind::statistics), staged) << "the bytes went through host memory";
  EXPECT_TRUE(b.check(to, 0, 3 * MiB, 7));
  EXPECT_TRUE(a.check(from, 0, 3 * MiB, 7)) << "the host of the exporting process may still read";
  a.end(handle);
  a.free(from);
}

struct places {
  std::int32_t from;
  std::int32_t to;
};
constexpr std::int32_t ordinary = -4;

class Everywhere : public ::testing::TestWithParam<places> {};

TEST_P(Everywhere, RandomPartsArriveAndNothingElse) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  process a("soft:2");
  process b("soft:2x1");
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, 300 * KiB + 3, 9 * MiB + 5}) {
    const std::uint64_t from = a.allocate(size, GetParam().from);
    a.fill(from, 0, size, seed);
    const std::uint64_t to = GetParam().to == ordinary ? 0 : b.allocate(size, GetParam().to);
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t begin = below(size);
      const std::uint64_t bytes = 1 + below(size - begin);
      const hpeExport handle = a.begin(from, begin, bytes);
      const std::uint64_t skip = below(bytes);
      const std::uint64_t length = round == 0 ? 0 : 1 + below(bytes - skip);
      if (GetParam().to == ordinary) {
        const report r = b.copy_out(handle, skip, length, seed, begin + skip);
        EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
        EXPECT_EQ(r.value, 1U) << "seed " << seed << ", " << length << " bytes from " << begin + skip;
      } else {
        const std::uint64_t at = below(size - length + 1);
        b.fill(to, 0, size, seed + 1);
        const report r = b.copy(to, at, handle, skip, length);
        EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
        EXPECT_TRUE(b.check(to, 0, at, seed + 1)) << "seed " << seed;
        EXPECT_TRUE(b.check(to, at, length, seed, begin + skip)) << "seed " << seed;
        EXPECT_TRUE(b.check(to, at + length, size - at - length, seed + 1, at + length)) << "seed " << seed;
      }
      a.end(handle);
    }
    a.free(from);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, Everywhere,
                         ::testing::Values(places{0, 1}, places{1, 0}, places{0, striped}, places{striped, 0},
                                           places{striped, striped}, places{on_host, 0}, places{on_host, ordinary},
                                           places{0, on_host}, places{on_host, on_host}, places{1, ordinary},
                                           places{striped, ordinary}));

TEST(Copies, SeeWhatKernelsWrote) {
  process a;
  process b;
  constexpr std::size_t size = 5 * MiB;
  const std::uint64_t from = a.allocate(size, 1);
  const std::uint64_t to = b.allocate(size, 1);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    ASSERT_EQ(a.tell({.what = order::kind::add, .on = 1, .number = from, .bytes = size, .seed = 3}).status,
              HPE_SUCCESS);
    const hpeExport handle = a.begin(from, 0, size);
    ASSERT_EQ(b.copy(to, 0, handle, 0, size).status, HPE_SUCCESS);
    a.end(handle);
    EXPECT_TRUE(b.check(to, 0, size, 3 * round, 0, order::kind::check_word));
  }
}

TEST(Copies, SeeWhatAKernelStillWrites) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB, 1);
  const std::uint64_t to = b.allocate(MiB);
  ASSERT_EQ(a.tell({.what = order::kind::add, .on = 1, .number = from, .bytes = MiB, .seed = 5, .from = 200000}).status,
            HPE_SUCCESS);
  const hpeExport handle = a.begin(from, 0, MiB);
  ASSERT_EQ(b.copy(to, 0, handle, 0, MiB).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(to, 0, MiB, 5, 0, order::kind::check_word));
  a.end(handle);
}

// The segment for memory of other processes has addresses for about twenty of these allocations at a time, so hpe must
// reuse addresses.
TEST(Copies, OfMoreMemoryThanThereAreAddresses) {
  process a;
  process b("soft:2", {"HPE_SEGMENT_SIZE=64M"});
  const std::uint64_t to = b.allocate(MiB);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t from = a.allocate(MiB);
    a.fill(from, 0, MiB, i);
    const hpeExport handle = a.begin(from, 0, MiB);
    const report r = b.copy(to, 0, handle, 0, MiB);
    ASSERT_EQ(r.status, HPE_SUCCESS) << i << ": " << r.words;
    EXPECT_TRUE(b.check(to, 0, MiB, i)) << i;
    a.end(handle);
    a.free(from);
  }
}

TEST(Copies, OfWhatNobodyWroteAreZero) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  b.fill(to, 0, MiB, 1);
  const hpeExport handle = a.begin(from, 0, MiB);
  ASSERT_EQ(b.copy(to, 0, handle, 0, MiB).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(to, 0, MiB, 0, 0, order::kind::check_word));
  a.end(handle);
}

TEST(Copies, BothDirectionsAtOnce) {
  process a;
  process b;
  constexpr std::size_t size = 40 * MiB + 1;
  const std::uint64_t out_a = a.allocate(size, 0);
  const std::uint64_t in_a = a.allocate(size, 1);
  const std::uint64_t out_b = b.allocate(size, 0);
  const std::uint64_t in_b = b.allocate(size, 1);
  a.fill(out_a, 0, size, 21);
  b.fill(out_b, 0, size, 22);
  const hpeExport from_a = a.begin(out_a, 0, size);
  const hpeExport from_b = b.begin(out_b, 0, size);
  a.start({.what = order::kind::copy, .number = in_a, .bytes = size, .handle = from_b});
  b.start({.what = order::kind::copy, .number = in_b, .bytes = size, .handle = from_a});
  EXPECT_EQ(a.finish().status, HPE_SUCCESS);
  EXPECT_EQ(b.finish().status, HPE_SUCCESS);
  EXPECT_TRUE(a.check(in_a, 0, size, 22));
  EXPECT_TRUE(b.check(in_b, 0, size, 21));
}

TEST(Copies, OfOnesOwnExports) {
  process a;
  const std::uint64_t from = a.allocate(MiB, 0);
  const std::uint64_t to = a.allocate(MiB, 1);
  a.fill(from, 0, MiB, 5);
  const hpeExport handle = a.begin(from, 100, 1000);
  EXPECT_TRUE(a.reachable(handle));
  ASSERT_EQ(a.copy(to, 3, handle, 10, 990).status, HPE_SUCCESS);
  EXPECT_TRUE(a.check(to, 3, 990, 5, 110));
  a.end(handle);
  EXPECT_FALSE(a.reachable(handle));
}

// After the return of hpeExportCopy, another process may write the source.
TEST(Copies, OfOnesOwnExportsAreCompleteAtTheReturn) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB, 0);
  const std::uint64_t to = a.allocate(MiB, 1);
  a.fill(from, 0, MiB, 5);
  const hpeExport handle = a.begin(from, 0, MiB);
  const std::uint64_t same = b.tell({.what = order::kind::open, .handle = handle}).value;
  constexpr std::uint64_t microseconds = 200000;
  const order slow{.what = order::kind::add, .on = 1, .number = to, .bytes = MiB, .from = microseconds};
  ASSERT_EQ(a.tell(slow).status, HPE_SUCCESS);  // the copy must wait for this kernel
  ASSERT_EQ(a.copy(to, 0, handle, 0, MiB).status, HPE_SUCCESS);
  b.fill(same, 0, MiB, 6);
  EXPECT_TRUE(a.check(to, 0, MiB, 5));
  b.free(same);
  a.end(handle);
}

TEST(Copies, SmallAllocationsOfOneSlab) {
  process a;
  process b;
  const std::uint64_t to = b.allocate(1000);
  std::vector<std::uint64_t> numbers;
  std::vector<hpeExport> handles;
  for (std::uint64_t i = 0; i < 50; ++i) {
    numbers.push_back(a.allocate(1000));
    a.fill(numbers[i], 0, 1000, i);
    handles.push_back(a.begin(numbers[i], 0, 1000));
  }
  const std::uint64_t other = a.allocate(1000);
  a.free(other);  // an allocation in the same block that is not exported
  for (std::uint64_t i = 0; i < 50; ++i) {
    ASSERT_EQ(b.copy(to, 0, handles[i], 0, 1000).status, HPE_SUCCESS);
    EXPECT_TRUE(b.check(to, 0, 1000, i));
    EXPECT_EQ(a.tell({.what = order::kind::free, .number = numbers[i]}).status, HPE_ERROR_INVALID_ARGUMENT);
    a.end(handles[i]);
    a.free(numbers[i]);
  }
}

TEST(Copies, ManyAllocationsPassThroughTheKeptImports) {
  process a;
  process b;
  constexpr std::size_t size = 300 * KiB;
  const std::uint64_t to = b.allocate(size);
  for (std::uint64_t round = 0; round < 2; ++round) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 100; ++i) {
      numbers.push_back(a.allocate(size));
      a.fill(numbers[i], 0, size, 100 * round + i);
    }
    for (std::uint64_t i = 0; i < 100; ++i) {
      const hpeExport handle = a.begin(numbers[i], 0, size);
      ASSERT_EQ(b.copy(to, 0, handle, 0, size).status, HPE_SUCCESS);
      EXPECT_TRUE(b.check(to, 0, size, 100 * round + i)) << i;
      a.end(handle);
    }
    for (const std::uint64_t n : numbers) a.free(n);
  }
}

}  // namespace
}  // namespace node_test
