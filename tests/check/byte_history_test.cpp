#include "runtime/check/byte_history.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/check/checker.h"

using namespace hpe::check;

namespace {

class ByteHistory : public testing::Test {
 protected:
  static constexpr std::uintptr_t base = 0x10000;

  // Work with a number; work is ordered before work with a greater number unless both are odd.
  static actor_ptr work(std::uint32_t number) { return std::make_shared<actor>(actor{{}, number}); }

  std::string add(const actor_ptr& by, use how, std::vector<std::pair<unsigned, unsigned>> ranges) {
    std::vector<touched> what;
    for (const auto& [begin, end] : ranges) what.push_back({base + begin, base + end, &by});
    std::string found;
    history_.add(
        what, how, true,
        [](const actor& a, const actor& b) {
          return a.site == b.site || (a.site < b.site && (a.site % 2 == 0 || b.site % 2 == 0));
        },
        [&](std::uintptr_t begin, std::uintptr_t end, const actor_ptr&, const actor* earlier, use) {
          if (!found.empty()) found += " ";
          found += (earlier == nullptr ? "fresh" : std::to_string(earlier->site)) + ":" + std::to_string(begin - base) +
                   "-" + std::to_string(end - base);
        });
    return found;
  }

  byte_history history_{base, 10000, true};
};

}  // namespace

TEST_F(ByteHistory, AWriteConflictsWithAnUnorderedWrite) {
  EXPECT_EQ(add(work(1), use::write, {{0, 100}}), "");
  EXPECT_EQ(add(work(3), use::write, {{50, 150}}), "1:50-100");
}

TEST_F(ByteHistory, OrderedAccessesDoNotConflict) {
  EXPECT_EQ(add(work(0), use::write, {{0, 100}}), "");
  EXPECT_EQ(add(work(1), use::read, {{0, 100}}), "");
  EXPECT_EQ(add(work(2), use::write, {{0, 100}}), "");
}

TEST_F(ByteHistory, ReadsDoNotConflictButAWriteConflictsWithEachOfThem) {
  EXPECT_EQ(add(work(1), use::read, {{0, 8}}), "");
  EXPECT_EQ(add(work(3), use::read, {{4, 12}}), "");
  EXPECT_EQ(add(work(5), use::write, {{0, 12}}), "1:0-4 1:4-8 3:4-8 3:8-12");
}

TEST_F(ByteHistory, AtomicAccessesConflictOnlyWithOthers) {
  EXPECT_EQ(add(work(1), use::atomic, {{0, 4}}), "");
  EXPECT_EQ(add(work(3), use::atomic, {{0, 4}}), "");
  EXPECT_EQ(add(work(5), use::read, {{0, 4}}), "1:0-4 3:0-4");
}

TEST_F(ByteHistory, AnAtomicAccessDoesNotHideAWriteFromLaterAtomicAccesses) {
  EXPECT_EQ(add(work(1), use::write, {{0, 4}}), "");
  EXPECT_EQ(add(work(2), use::atomic, {{0, 4}}), "");
  EXPECT_EQ(add(work(3), use::atomic, {{0, 4}}), "1:0-4");
}

TEST_F(ByteHistory, RangesMayCrossPagesAndLeaveTheAllocation) {
  EXPECT_EQ(add(work(1), use::write, {{4000, 9000}, {9500, 20000}}), "");
  EXPECT_EQ(add(work(3), use::read, {{0, 4050}, {8190, 8200}}), "1:4000-4050 1:8190-8192 1:8192-8200");
  EXPECT_EQ(add(work(5), use::read, {{9000, 10000}}), "1:9500-10000");
}

TEST_F(ByteHistory, AStridedAccessLeavesTheBytesBetween) {
  std::vector<std::pair<unsigned, unsigned>> even, odd;
  for (unsigned i = 0; i < 10000; i += 8) {
    even.emplace_back(i, i + 4);
    odd.emplace_back(i + 4, i + 8);
  }
  EXPECT_EQ(add(work(1), use::write, even), "");
  EXPECT_EQ(add(work(3), use::write, odd), "");
  EXPECT_EQ(add(work(5), use::read, {{8, 9}, {14, 15}}), "1:8-9 3:14-15");
}

TEST_F(ByteHistory, ReadsOfBytesThatNothingWroteAreFoundOnce) {
  history_ = byte_history(base, 100, false);
  EXPECT_TRUE(history_.is_fresh(base, base + 100));
  EXPECT_EQ(add(work(0), use::write, {{0, 10}}), "");
  EXPECT_FALSE(history_.is_fresh(base + 9, base + 20));
  EXPECT_TRUE(history_.is_fresh(base + 10, base + 20));
  history_.set_written(base + 20, base + 30);
  EXPECT_EQ(add(work(2), use::read, {{0, 40}}), "fresh:10-20 fresh:30-40");
  EXPECT_EQ(add(work(4), use::read, {{0, 40}}), "");
}
