// Tests memory of another process that is opened in place: both processes use the same copy.

#include <unistd.h>

#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

report open(process& p, const hpeExport& handle) { return p.tell({.what = order::kind::open, .handle = handle}); }

report add(process& p, std::int32_t device, std::uint64_t number, std::size_t offset, std::size_t bytes,
           std::uint64_t what) {
  return p.tell(
      {.what = order::kind::add, .on = device, .number = number, .offset = offset, .bytes = bytes, .seed = what});
}

class Open : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(Open, CodeAndKernelsOfBothProcessesUseOneCopy) {
  process a;
  process b;
  constexpr std::size_t size = 5 * MiB;
  const std::uint64_t memory = a.allocate(size, GetParam());
  const hpeExport handle = a.begin(memory, 0, size);
  const report opened = open(b, handle);
  ASSERT_EQ(opened.status, HPE_SUCCESS) << opened.words;
  const std::uint64_t same = opened.value;

  ASSERT_EQ(add(a, 0, memory, 0, size, 1).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(same, 0, size, 1, 0, order::kind::check_word)) << "what a kernel there wrote";
  for (std::int32_t d = 0; d < 2; ++d) ASSERT_EQ(add(b, d, same, 0, size, 10).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(same, 0, size, 21, 0, order::kind::check_word)) << "what kernels here wrote";
  ASSERT_EQ(add(a, 0, memory, 0, size, 100).status, HPE_SUCCESS) << "a kernel there sees it";
  EXPECT_TRUE(b.check(same, 0, size, 121, 0, order::kind::check_word));
  b.fill(same, MiB, MiB, 5);
  a.end(handle);
  EXPECT_TRUE(a.check(memory, MiB, MiB, 5)) << "what code here wrote";
  EXPECT_TRUE(a.check(memory, 0, MiB, 121, 0, order::kind::check_word));
  EXPECT_TRUE(a.check(memory, 2 * MiB, size - 2 * MiB, 121, 0, order::kind::check_word));
  b.free(same);
  a.free(memory);
}

INSTANTIATE_TEST_SUITE_P(Places, Open, ::testing::Values(1, on_host, striped));

TEST(OpenMemory, IsThePartThatWasExported) {
  process a;
  process b;
  constexpr std::size_t size = 3 * MiB + 100;
  const std::uint64_t memory = a.allocate(size, 1);
  a.fill(memory, 0, size, 31);
  for (const auto& [offset, bytes] :
       {std::pair<std::size_t, std::size_t>{0, 1}, {4095, 2}, {2 * MiB - 3, 5000}, {size - 1, 1}, {777, size - 777}}) {
    const hpeExport handle = a.begin(memory, offset, bytes);
    const report opened = open(b, handle);
    ASSERT_EQ(opened.status, HPE_SUCCESS) << opened.words;
    EXPECT_TRUE(b.check(opened.value, 0, bytes, 31, offset));
    EXPECT_TRUE(b.check(opened.value, 0, bytes, 31, offset, order::kind::check_copy));
    const order past{.what = order::kind::check_copy, .number = opened.value, .offset = bytes - 1, .bytes = 2};
    EXPECT_EQ(b.tell(past).status, HPE_ERROR_NOT_A_REGION);
    EXPECT_EQ(b.tell({.what = order::kind::free, .number = opened.value, .offset = 1}).status, HPE_ERROR_NOT_A_REGION);
    a.end(handle);
    b.free(opened.value);
  }
}

TEST(OpenMemory, TakesPartInCopies) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(2 * MiB, 0);
  const std::uint64_t other = b.allocate(2 * MiB, 1);
  b.fill(other, 0, 2 * MiB, 41);
  const hpeExport handle = a.begin(memory, 0, 2 * MiB);
  const std::uint64_t same = open(b, handle).value;
  const hpeExport back = b.begin(other, 0, 2 * MiB);
  ASSERT_EQ(b.copy(same, 10, back, 10, MiB).status, HPE_SUCCESS) << "from the process's own memory";
  a.end(handle);
  EXPECT_TRUE(a.check(memory, 10, MiB, 41, 10));
  EXPECT_EQ(b.tell({.what = order::kind::begin, .number = same, .bytes = 1}).status, HPE_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(a.tell({.what = order::kind::open, .handle = back}).status, HPE_SUCCESS);
  b.free(same);
}

TEST(OpenMemory, LivesUntilTheLastLetsGo) {
  process a;
  process b;
  process c;
  const std::uint64_t memory = a.allocate(2 * MiB, 0);
  a.fill(memory, 0, 2 * MiB, 51);
  const hpeExport handle = a.begin(memory, 0, 2 * MiB);
  const std::uint64_t in_b = open(b, handle).value;
  const std::uint64_t in_c = open(c, handle).value;
  a.end(handle);
  a.free(memory);
  EXPECT_EQ(open(c, handle).status, HPE_ERROR_NOT_FOUND);
  // New allocations of the process are at other addresses.
  std::vector<std::uint64_t> others;
  for (int i = 0; i < 10; ++i) {
    others.push_back(a.allocate(2 * MiB, 0));
    a.fill(others.back(), 0, 2 * MiB, 52);
    ASSERT_EQ(add(a, 0, others.back(), 0, 2 * MiB, 1).status, HPE_SUCCESS);
  }
  EXPECT_TRUE(b.check(in_b, 0, 2 * MiB, 51));
  b.free(in_b);
  EXPECT_TRUE(c.check(in_c, 0, 2 * MiB, 51));
  a.kill();
  EXPECT_TRUE(c.check(in_c, 0, 2 * MiB, 51));
  ASSERT_EQ(c.tell({.what = order::kind::fill, .number = in_c, .bytes = 100, .seed = 53}).status, HPE_SUCCESS);
  EXPECT_TRUE(c.check(in_c, 0, 100, 53));
  c.free(in_c);
}

TEST(OpenMemory, IsGivenBackWhenAllAreGone) {
  // The device has memory for only one allocation.
  process a("soft:1", {"HPE_SOFT_MEMORY=8M", "HPE_OVERSUBSCRIBE=off"});
  const auto room = [&] {
    const report r = a.tell({.what = order::kind::allocate, .bytes = 8 * MiB});
    if (r.status == HPE_SUCCESS) a.free(r.value);
    return r.status == HPE_SUCCESS;
  };
  const auto share = [&](process& b) {
    const std::uint64_t memory = a.allocate(8 * MiB);
    const hpeExport handle = a.begin(memory, 0, 8 * MiB);
    const std::uint64_t opened = open(b, handle).value;
    a.end(handle);
    a.free(memory);
    EXPECT_FALSE(room()) << "another process has the memory open";
    return opened;
  };
  const auto expect_room_soon = [&] {
    bool there = false;
    for (int i = 0; i < 200 && !there; ++i) there = room() || ::usleep(10000) != 0;
    EXPECT_TRUE(there);
  };
  process b;
  b.free(share(b));
  expect_room_soon();
  share(b);
  b.kill();
  expect_room_soon();
}

TEST(OpenMemory, IsReadAnewByItsOwnerAfterASecondExport) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(MiB, 0);
  a.fill(memory, 0, MiB, 61);
  const hpeExport first = a.begin(memory, 0, MiB);
  const std::uint64_t same = open(b, first).value;
  EXPECT_TRUE(a.check(memory, 0, MiB, 61)) << "from a copy on the host";
  b.fill(same, 0, MiB, 62);
  const hpeExport second = a.begin(memory, 0, MiB);
  EXPECT_TRUE(a.check(memory, 0, MiB, 62));
  a.end(first);
  a.end(second);
  b.free(same);
}

TEST(OpenMemory, StaysOnItsDevice) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(MiB, 0);
  const hpeExport handle = a.begin(memory, 0, MiB);
  const std::uint64_t opened = open(b, handle).value;
  a.end(handle);
  EXPECT_EQ(a.tell({.what = order::kind::migrate, .on = 1, .number = memory}).status, HPE_ERROR_NOT_SUPPORTED);
  b.free(opened);
}

TEST(OpenMemory, ThousandsLeaveNothing) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(4 * MiB, 0);
  const hpeExport handle = a.begin(memory, 0, 4 * MiB);
  b.free(open(b, handle).value);
  const std::uint64_t descriptors = a.count(order::kind::descriptors) + 1000 * b.count(order::kind::descriptors);
  const std::uint64_t mappings = b.count(order::kind::mappings);
  for (int i = 0; i < 1000; ++i) b.free(open(b, handle).value);
  EXPECT_EQ(a.count(order::kind::descriptors) + 1000 * b.count(order::kind::descriptors), descriptors);
  EXPECT_LE(b.count(order::kind::mappings), mappings + 8);
}

TEST(OpenMemory, NeedsAHandleOfAnotherLivingProcess) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(MiB, 0);
  const hpeExport handle = a.begin(memory, 0, MiB);
  EXPECT_EQ(open(a, handle).status, HPE_ERROR_NOT_SUPPORTED) << "its own";
  EXPECT_EQ(open(b, hpeExport{}).status, HPE_ERROR_NOT_FOUND);
  a.kill();
  EXPECT_EQ(open(b, handle).status, HPE_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace node_test
