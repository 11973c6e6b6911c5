// A handle refers to its object until the handle is destroyed, and a handle can be destroyed only once. Objects are
// deleted while no lock is held.
#include "interpose/soft/cudart/device/handle_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/interpose/soft/cudart/code_of.h"

namespace hpe::cudart {
namespace {

using testing::code_of;

struct object {
  explicit object(
      int n, std::function<void()> last_words = [] {})
      : number(n), at_end(std::move(last_words)) {}
  object(const object&) = delete;
  object& operator=(const object&) = delete;
  ~object() { at_end(); }

  const int number;
  const std::function<void()> at_end;
};

using handle = struct handle_st*;
using table = handle_table<handle, object, cudaErrorInvalidResourceHandle>;

TEST(HandleTable, FindsTheObjectsThatItWasGiven) {
  table it;
  EXPECT_TRUE(it.all().empty());
  const handle one = it.adopt(std::make_shared<object>(1));
  const handle two = it.adopt(std::make_shared<object>(2));
  const auto chosen = reinterpret_cast<handle>(std::uintptr_t{24});
  it.enter(chosen, std::make_shared<object>(3));
  EXPECT_EQ(it.find(one)->number, 1);
  EXPECT_EQ(it.find(two)->number, 2);
  EXPECT_EQ(it.find(chosen)->number, 3);
  EXPECT_EQ(it.all().size(), 3U);
  it.enter(chosen, std::make_shared<object>(4));
  EXPECT_EQ(it.find(chosen)->number, 4);
  EXPECT_EQ(it.all().size(), 3U);
}

TEST(HandleTable, TellsUnknownHandlesFromKnownOnes) {
  table it;
  EXPECT_EQ(code_of([&] { it.find(nullptr); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(it.find_or_null(nullptr), nullptr);
  EXPECT_EQ(it.take_or_null(nullptr), nullptr);
  const handle one = it.adopt(std::make_shared<object>(1));
  const auto held = it.find(one);
  EXPECT_EQ(it.destroy(one), held);
  EXPECT_EQ(held->number, 1);  // the object exists as long as a reference to it does
  EXPECT_EQ(code_of([&] { it.find(one); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(code_of([&] { it.destroy(one); }), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(it.take_or_null(one), nullptr);
}

TEST(HandleTable, TakesOutThoseOfAChoice) {
  table it;
  for (int i = 0; i < 101; ++i) it.adopt(std::make_shared<object>(i));
  const auto odd = it.take_if([](const object& each) { return each.number % 2 != 0; });
  EXPECT_EQ(odd.size(), 50U);
  EXPECT_TRUE(std::all_of(odd.begin(), odd.end(), [](const auto& each) { return each->number % 2 != 0; }));
  const auto left = it.all();
  EXPECT_EQ(left.size(), 51U);
  EXPECT_TRUE(std::all_of(left.begin(), left.end(), [](const auto& each) { return each->number % 2 == 0; }));
}

TEST(HandleTable, ObjectsEndWithoutItsLock) {
  table it;
  int ends = 0;
  const auto asks_again = [&] { ends += it.find_or_null(nullptr) == nullptr && it.all().empty() ? 1 : 0; };
  it.destroy(it.adopt(std::make_shared<object>(1, asks_again)));
  EXPECT_EQ(ends, 1);
  it.adopt(std::make_shared<object>(2, asks_again));
  it.take_if([](const object&) { return true; });
  EXPECT_EQ(ends, 2);
}

TEST(HandleTable, OneOfSeveralThreadsDestroysAHandle) {
  table it;
  for (int round = 0; round < 50; ++round) {
    const handle one = it.adopt(std::make_shared<object>(round));
    std::atomic<int> done{0};
    std::atomic<int> told{0};
    const auto destroy = [&] {
      if (code_of([&] { it.destroy(one); }) == cudaSuccess) {
        ++done;
      } else {
        ++told;
      }
    };
    std::thread other(destroy);
    std::thread third(destroy);
    destroy();
    other.join();
    third.join();
    ASSERT_EQ(done, 1);
    ASSERT_EQ(told, 2);
  }
}

}  // namespace
}  // namespace hpe::cudart
