// Handles that have become invalid, and operations that are forbidden while memory is exported.

#include <unistd.h>

#include <cstring>
#include <random>

#include "runtime/node/handle.h"
#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(Handles, ThatEndedGiveNothing) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  b.fill(to, 0, MiB, 9);
  const hpeExport first = a.begin(from, 0, MiB);
  ASSERT_EQ(b.copy(to, 0, first, 0, 1).status, HPE_SUCCESS);
  b.fill(to, 0, MiB, 9);
  a.end(first);
  const hpeExport second = a.begin(from, 0, MiB);  // very likely uses the same entry of the table
  EXPECT_FALSE(b.reachable(first));
  EXPECT_TRUE(b.reachable(second));
  const report r = b.copy(to, 0, first, 0, MiB);
  EXPECT_EQ(r.status, HPE_ERROR_NOT_FOUND);
  EXPECT_NE(std::string(r.words).find("the export or its process has ended"), std::string::npos) << r.words;
  EXPECT_TRUE(b.check(to, 0, MiB, 9)) << "a failed copy wrote bytes";
  EXPECT_EQ(a.tell({.what = order::kind::end, .handle = first}).status, HPE_ERROR_NOT_FOUND);
  EXPECT_EQ(b.tell({.what = order::kind::end, .handle = second}).status, HPE_ERROR_NOT_FOUND)
      << "the handle is of another process";
  a.end(second);
}

TEST(Handles, ThatWereMadeUpGiveNothing) {
  const std::uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  b.fill(to, 0, MiB, 9);
  const hpeExport good = a.begin(from, 0, MiB);
  const auto refused = [&](const hpeExport& bad, const char* how) {
    EXPECT_FALSE(b.reachable(bad)) << how << ", seed " << seed;
    EXPECT_EQ(b.copy(to, 0, bad, 0, 1).status, HPE_ERROR_NOT_FOUND) << how << ", seed " << seed;
    EXPECT_EQ(a.tell({.what = order::kind::end, .handle = bad}).status, HPE_ERROR_NOT_FOUND) << how;
  };
  refused(hpeExport{}, "zeros");
  for (int i = 0; i < 20; ++i) {
    hpeExport bad = good;
    bad.bytes[random() % sizeof bad.bytes] ^= static_cast<unsigned char>(1 + random() % 255);
    refused(bad, "one byte changed");
  }
  // Handles forged by a process that knows the format.
  hpe::node::handle h = *hpe::node::decode(good);
  h.token ^= 1;
  refused(encode(h), "token");
  h = *hpe::node::decode(good);
  h.entry = 0xffffffff;
  refused(encode(h), "entry");
  h.entry = 12345;
  refused(encode(h), "unused entry");
  h = *hpe::node::decode(good);
  h.process.words[1] ^= 1;
  refused(encode(h), "process");
  EXPECT_TRUE(b.check(to, 0, MiB, 9));
  EXPECT_EQ(b.copy(to, 0, good, 0, MiB).status, HPE_SUCCESS) << "the process still answers";
  a.end(good);
}

TEST(Handles, BoundTheCopy) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  const hpeExport handle = a.begin(from, 1000, 5000);
  EXPECT_EQ(b.copy(to, 0, handle, 0, 5001).status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(b.copy(to, 0, handle, 5001, 0).status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(b.copy(to, 0, handle, 1, ~std::size_t{0}).status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(b.copy(to, MiB - 1, handle, 0, 2).status, HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(b.copy(to, MiB - 1, handle, 4999, 1).status, HPE_SUCCESS);
  EXPECT_EQ(b.copy(to, 0, handle, 5000, 0).status, HPE_SUCCESS);
  EXPECT_EQ(a.copy(from, 0, handle, 0, 5001).status, HPE_ERROR_INVALID_ARGUMENT) << "of its own";
  a.end(handle);
}

TEST(Handles, AreForLiveAllocations) {
  process a;
  const std::uint64_t memory = a.allocate(MiB);
  const order past{.what = order::kind::begin, .number = memory, .offset = MiB - 1, .bytes = 2};
  EXPECT_EQ(a.tell(past).status, HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(a.tell({.what = order::kind::begin, .number = memory}).status, HPE_ERROR_INVALID_ARGUMENT) << "no bytes";
  a.free(memory);
  EXPECT_EQ(a.tell({.what = order::kind::begin, .number = memory, .bytes = 1}).status, HPE_ERROR_NOT_A_REGION);
}

TEST(Handles, KeepTheirAllocation) {
  process a;
  process b;
  const std::uint64_t memory = a.allocate(MiB, 0);
  const std::uint64_t to = b.allocate(MiB);
  a.fill(memory, 0, MiB, 4);
  const hpeExport one = a.begin(memory, 0, 10);
  const hpeExport two = a.begin(memory, 0, MiB);
  const report freed = a.tell({.what = order::kind::free, .number = memory});
  EXPECT_EQ(freed.status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(freed.words).find("hpeExportEnd"), std::string::npos) << freed.words;
  a.end(one);
  EXPECT_EQ(a.tell({.what = order::kind::free, .number = memory}).status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(a.tell({.what = order::kind::migrate, .on = 1, .number = memory}).status, HPE_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(b.copy(to, 0, two, 0, MiB).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(to, 0, MiB, 4));
  a.end(two);
  EXPECT_EQ(a.tell({.what = order::kind::migrate, .on = 1, .number = memory}).status, HPE_SUCCESS);
  a.fill(memory, 0, MiB, 6);
  const hpeExport moved = a.begin(memory, 0, MiB);
  ASSERT_EQ(b.copy(to, 0, moved, 0, MiB).status, HPE_SUCCESS);
  EXPECT_TRUE(b.check(to, 0, MiB, 6)) << "the copy used the memory's old place";
  a.end(moved);
  a.free(memory);
}

TEST(Handles, ThousandsLeaveNothing) {
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  ASSERT_EQ(a.tell({.what = order::kind::repeat, .number = from, .bytes = 10, .seed = 10}).value, 10U);
  {
    const hpeExport handle = a.begin(from, 0, 10);
    ASSERT_EQ(b.copy(to, 0, handle, 0, 10).status, HPE_SUCCESS);
    a.end(handle);
  }
  const auto count = [&](order::kind what) { return std::pair(a.count(what), b.count(what)); };
  const auto descriptors = count(order::kind::descriptors);
  const auto mappings = count(order::kind::mappings);
  ASSERT_EQ(a.tell({.what = order::kind::repeat, .number = from, .bytes = 10, .seed = 5000}).value, 5000U);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t fresh = a.allocate(300 << 10);
    const hpeExport handle = a.begin(fresh, 0, 100);
    ASSERT_EQ(b.copy(to, 0, handle, 0, 100).status, HPE_SUCCESS);
    a.end(handle);
    a.free(fresh);
  }
  EXPECT_EQ(count(order::kind::descriptors), descriptors);
  const auto after = count(order::kind::mappings);
  EXPECT_LE(after.first, mappings.first + 8);
  EXPECT_LE(after.second, mappings.second + 8);
}

TEST(Handles, OfAnotherUserAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  process a;
  process b;
  const std::uint64_t from = a.allocate(MiB);
  const std::uint64_t to = b.allocate(MiB);
  b.fill(to, 0, MiB, 3);
  const hpeExport handle = a.begin(from, 0, MiB);
  EXPECT_EQ(b.tell({.what = order::kind::connect_raw, .handle = handle}).value, 1U);
  ASSERT_EQ(b.tell({.what = order::kind::other_user, .seed = 65534}).value, 1U);
  EXPECT_FALSE(b.reachable(handle));
  EXPECT_EQ(b.copy(to, 0, handle, 0, MiB).status, HPE_ERROR_NOT_FOUND);
  EXPECT_TRUE(b.check(to, 0, MiB, 3));
  EXPECT_EQ(b.tell({.what = order::kind::connect_raw, .handle = handle}).value, 0U) << "the socket answered";
  a.end(handle);
}

}  // namespace
}  // namespace node_test
