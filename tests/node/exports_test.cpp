// Exported memory in the exporting process: the process sees the writes of other processes after they have closed the
// memory, and memory that no other process uses can be evicted.

#include <unistd.h>

#include <string>
#include <vector>

#include "tests/node/contents.h"
#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

report open(process& p, const hpeExport& handle) { return p.tell({.what = order::kind::open, .handle = handle}); }

report add(process& p, std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t what) {
  return p.tell({.what = order::kind::add, .number = number, .offset = offset, .bytes = bytes, .seed = what});
}

bool words_are(process& p, std::uint64_t number, std::size_t bytes, std::uint64_t what) {
  const report r = p.tell({.what = order::kind::check_word, .number = number, .bytes = bytes, .seed = what});
  return r.status == HPE_SUCCESS && r.value == 1;
}

// ---- writes of other processes --------------------------------------------------------------------

class ClosedBefore : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ClosedBefore, TheEndIsSeenAfterIt) {
  process a;
  process b;
  const std::size_t size = GetParam();
  for (std::uint64_t round = 0; round < 5; ++round) {
    const std::uint64_t memory = a.allocate(size);
    a.fill(memory, 0, size, round);
    const hpeExport handle = a.begin(memory, 0, size);
    EXPECT_TRUE(a.check(memory, 0, size, round)) << "the host may read meanwhile";
    const std::uint64_t same = open(b, handle).value;
    b.fill(same, 0, size, 100 + round);
    b.free(same);
    ::usleep(10000);  // usually long enough for the exporter to notice
    a.end(handle);
    EXPECT_TRUE(a.check(memory, 0, size, 100 + round)) << "round " << round;
    a.free(memory);
  }
}

TEST_P(ClosedBefore, AnotherBeginIsSeenAfterIt) {
  process a;
  process b;
  const std::size_t size = GetParam();
  const std::uint64_t memory = a.allocate(size);
  a.fill(memory, 0, size, 1);
  const hpeExport first = a.begin(memory, 0, size);
  const std::uint64_t same = open(b, first).value;
  a.end(first);
  EXPECT_TRUE(a.check(memory, 0, size, 1));
  b.fill(same, 0, size, 2);
  b.free(same);
  ::usleep(10000);
  const hpeExport second = a.begin(memory, 0, size);
  EXPECT_TRUE(a.check(memory, 0, size, 2));
  EXPECT_TRUE(a.check(memory, 0, size, 2, 0, order::kind::check_copy));
  a.end(second);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ClosedBefore, ::testing::Values(1000, 300 * KiB, 5 * MiB));

TEST(Exports, ShowWhatAProcessWroteThatDied) {
  process a;
  const std::uint64_t memory = a.allocate(MiB);
  a.fill(memory, 0, MiB, 1);
  const hpeExport handle = a.begin(memory, 0, MiB);
  EXPECT_TRUE(a.check(memory, 0, MiB, 1));
  {
    process b;
    const std::uint64_t same = open(b, handle).value;
    b.fill(same, 0, MiB, 2);
    b.kill();
  }
  ::usleep(10000);
  a.end(handle);
  EXPECT_TRUE(a.check(memory, 0, MiB, 2));
}

TEST(Exports, KeepWhatWasWrittenWhenTheMemoryMoves) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(MiB, 0);
  a.fill(memory, 0, MiB, 1);
  const hpeExport handle = a.begin(memory, 0, MiB);
  EXPECT_TRUE(a.check(memory, 0, MiB, 1));
  const std::uint64_t same = open(b, handle).value;
  a.end(handle);
  b.fill(same, 0, MiB, 2);
  const order move{.what = order::kind::migrate, .on = 1, .number = memory};
  EXPECT_EQ(a.tell(move).status, HPE_ERROR_NOT_SUPPORTED);
  b.free(same);
  const report moved = a.tell(move);
  EXPECT_EQ(moved.status, HPE_SUCCESS) << moved.words;
  EXPECT_TRUE(a.check(memory, 0, MiB, 2));
}

// Each device reads its own replica of `from`, because the link between the devices is slow. hpe must not use the
// replicas while it cannot know whether another process has written the memory.
TEST(Exports, ShowToLaunchesOnSeveralDevicesWhatAProcessHasWritten) {
  process a("soft:2", {"HPE_SOFT_PEER_LINK=300M:5"});
  process b;
  contents read{.id = 1, .bytes = std::vector<std::byte>(512 * KiB)};
  contents sums{.id = 2, .bytes = std::vector<std::byte>(16 * sum_block)};
  const std::uint64_t from = a.allocate(read.size());
  const std::uint64_t to = a.allocate(sums.size());
  const auto is_right_after_a_launch = [&] {
    const std::uint64_t count = read.size() / sizeof(std::uint32_t);
    const report launched =
        a.tell({.what = order::kind::sum_over, .number = to, .bytes = sums.size(), .seed = count, .other = from});
    EXPECT_EQ(launched.status, HPE_SUCCESS) << launched.words;
    sums.sum(sums.whole(), read, 0, count);
    const report found = a.tell({.what = order::kind::hash, .number = to, .bytes = sums.size()});
    return found.value == hash_of(sums.bytes.data(), sums.size());
  };
  a.fill(from, 0, read.size(), 1);
  read.fill(read.whole(), 1);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_right_after_a_launch());
  const hpeExport handle = a.begin(from, 0, read.size());
  const std::uint64_t same = open(b, handle).value;
  b.fill(same, 0, read.size(), 2);
  read.fill(read.whole(), 2);
  EXPECT_TRUE(is_right_after_a_launch()) << "while the memory is exported and open";
  a.end(handle);
  b.fill(same, 0, read.size(), 3);
  read.fill(read.whole(), 3);
  EXPECT_TRUE(is_right_after_a_launch()) << "while the memory is open";
  b.fill(same, 0, read.size(), 4);
  read.fill(read.whole(), 4);
  b.free(same);
  EXPECT_TRUE(is_right_after_a_launch()) << "after the memory was closed";
  a.end(a.begin(from, 0, read.size()));
  EXPECT_TRUE(is_right_after_a_launch()) << "with new replicas";
}

TEST(Exports, OfASmallAllocationKeepItsPlaceUntilAllHaveClosedIt) {
  process a;
  process b;
  const std::uint64_t neighbour = a.allocate(1000);  // an allocation that keeps the slab from being freed
  const std::uint64_t memory = a.allocate(1000);
  a.fill(memory, 0, 1000, 1);
  const hpeExport handle = a.begin(memory, 0, 1000);
  const std::uint64_t same = open(b, handle).value;
  a.end(handle);
  a.free(memory);
  EXPECT_EQ(a.tell({.what = order::kind::free, .number = memory}).status, HPE_ERROR_NOT_A_REGION) << "a second time";
  std::vector<std::uint64_t> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(a.allocate(1000));
    ASSERT_EQ(add(a, others.back(), 0, 1000, 7).status, HPE_SUCCESS);
  }
  EXPECT_TRUE(b.check(same, 0, 1000, 1)) << "another allocation of that process uses the bytes";
  b.fill(same, 0, 1000, 2);
  for (const std::uint64_t other : others) EXPECT_TRUE(words_are(a, other, 1000, 7));
  b.free(same);
  for (const std::uint64_t other : others) a.free(other);
  a.free(neighbour);
}

// ---- device memory ---------------------------------------------------------------------------------

const std::vector<std::string> small_device{"HPE_DEVICE_MEMORY=16M"};

TEST(Exports, ThatEndedMakeRoom) {
  process a("soft:1", small_device);
  process b;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t memory = a.allocate(4 * MiB);
    report r = add(a, memory, 0, 4 * MiB, i + 1);
    ASSERT_EQ(r.status, HPE_SUCCESS) << r.words << ", array " << i;
    const hpeExport handle = a.begin(memory, 0, 4 * MiB);
    ASSERT_EQ(b.tell({.what = order::kind::hash_export, .bytes = MiB, .handle = handle}).status, HPE_SUCCESS);
    if (i % 2 == 1) {  // in even rounds, the other process only copies
      const std::uint64_t same = open(b, handle).value;
      r = add(b, same, 0, 4 * MiB, 100);
      ASSERT_EQ(r.status, HPE_SUCCESS) << r.words;
      b.free(same);
    }
    a.end(handle);
  }
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(words_are(a, i + 1, 4 * MiB, i + 1 + (i % 2) * 100)) << i;
}

TEST(Exports, KeepWhatWasWrittenAndClosedWhenTheMemoryMakesRoom) {
  process a("soft:1", small_device);
  process b;
  const std::uint64_t memory = a.allocate(4 * MiB);
  a.fill(memory, 0, 4 * MiB, 1);
  const hpeExport handle = a.begin(memory, 0, 4 * MiB);
  const std::uint64_t same = open(b, handle).value;
  a.end(handle);
  EXPECT_TRUE(a.check(memory, 0, 4 * MiB, 1));
  b.fill(same, 0, 4 * MiB, 2);
  b.free(same);
  ::usleep(10000);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(add(a, a.allocate(4 * MiB), 0, 4 * MiB, 1).status, HPE_SUCCESS);
  EXPECT_TRUE(a.check(memory, 0, 4 * MiB, 2));
}

TEST(Exports, ThatLastStayOnTheirDevice) {
  process a("soft:1", small_device);
  process b;
  const std::uint64_t memory = a.allocate(4 * MiB);
  ASSERT_EQ(add(a, memory, 0, 4 * MiB, 1).status, HPE_SUCCESS);
  const hpeExport handle = a.begin(memory, 0, 4 * MiB);
  const std::uint64_t same = open(b, handle).value;
  for (int i = 0; i < 5; ++i) ASSERT_EQ(add(a, a.allocate(4 * MiB), 0, 4 * MiB, 1).status, HPE_SUCCESS);
  ASSERT_EQ(add(b, same, 0, 4 * MiB, 10).status, HPE_SUCCESS);
  ASSERT_EQ(add(a, memory, 0, 4 * MiB, 100).status, HPE_SUCCESS);
  EXPECT_TRUE(words_are(b, same, 4 * MiB, 111));
  // If the data of a launch does not fit beside the exported memory, hpe refuses the launch at once instead of waiting.
  const std::uint64_t large = a.allocate(14 * MiB);
  EXPECT_EQ(add(a, large, 0, 14 * MiB, 1).status, HPE_ERROR_OUT_OF_MEMORY);
  a.end(handle);
  b.free(same);
  const report fits = add(a, large, 0, 14 * MiB, 1);
  EXPECT_EQ(fits.status, HPE_SUCCESS) << fits.words;
}

TEST(Exports, OfMemoryOfWhichAPartWasEvicted) {
  process a("soft:1", small_device);
  process b;
  std::vector<std::uint64_t> memories;
  for (std::uint64_t i = 0; i < 4; ++i) {
    memories.push_back(a.allocate(8 * MiB));
    ASSERT_EQ(add(a, memories.back(), 0, 8 * MiB, i + 1).status, HPE_SUCCESS);
  }
  for (std::uint64_t i = 0; i < 4; ++i) {
    const report exported =
        a.tell({.what = order::kind::begin, .number = memories[i], .offset = 5 * MiB - 100, .bytes = 1000});
    ASSERT_EQ(exported.status, HPE_SUCCESS) << exported.words;
    const report opened = open(b, exported.handle);
    ASSERT_EQ(opened.status, HPE_SUCCESS) << opened.words;
    EXPECT_TRUE(words_are(b, opened.value, 1000, i + 1));
    b.free(opened.value);
    a.end(exported.handle);
  }
}

TEST(Exports, OfPartsOfAnAllocationThatIsLargerThanItsDevice) {
  process a("soft:1", small_device);
  process b;
  constexpr std::size_t size = 40 * MiB;
  constexpr std::size_t part = 4 * MiB;
  const std::uint64_t memory = a.allocate(size);
  for (std::size_t at = 0; at < size; at += part)
    ASSERT_EQ(add(a, memory, at, part, at / part + 1).status, HPE_SUCCESS);
  for (std::size_t at = 0; at < size; at += part) {
    const report exported = a.tell({.what = order::kind::begin, .number = memory, .offset = at, .bytes = part});
    ASSERT_EQ(exported.status, HPE_SUCCESS) << exported.words;
    const std::uint64_t same = open(b, exported.handle).value;
    EXPECT_TRUE(words_are(b, same, part, at / part + 1));
    ASSERT_EQ(add(b, same, 0, part, 100).status, HPE_SUCCESS);
    b.free(same);
    a.end(exported.handle);
  }
  for (std::size_t at = 0; at < size; at += part) {
    const report r = a.tell(
        {.what = order::kind::check_word, .number = memory, .offset = at, .bytes = part, .seed = at / part + 101});
    EXPECT_EQ(r.value, 1U) << "part " << at / part;
  }
}

}  // namespace
}  // namespace node_test
