#include "runtime/memory/small_objects.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/memory/expect_error.h"

namespace {

using namespace hpe;
using memory::small_objects;
using object = small_objects::object;

// Slab memory is never touched, so any addresses do.
std::byte* slab(std::size_t index) {
  return reinterpret_cast<std::byte*>(std::uintptr_t{0x200000000000}) + index * granule_size;
}

TEST(SmallObjects, AsksForASlabFirst) {
  small_objects objects;
  EXPECT_EQ(objects.allocate(64), nullptr);
  objects.add_slab(slab(0));
  EXPECT_EQ(objects.allocate(64), slab(0));
}

TEST(SmallObjects, AreAlignedAndLoseLittle) {
  for (std::size_t size = 1; size <= small_objects::largest; size += size < 2000 ? 7 : 977) {
    small_objects objects;
    objects.add_slab(slab(0));
    std::size_t count = 0;
    while (const std::byte* p = objects.allocate(size)) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % small_objects::alignment, 0u);
      ++count;
    }
    const std::size_t rounded = round_up(size, small_objects::alignment);
    ASSERT_GE(static_cast<double>(count * rounded), 0.75 * granule_size) << size << " bytes";
  }
}

TEST(SmallObjects, SizesDoNotMixInASlab) {
  small_objects objects;
  objects.add_slab(slab(0));
  ASSERT_NE(objects.allocate(256), nullptr);
  EXPECT_EQ(objects.allocate(4096), nullptr);
  objects.add_slab(slab(1));
  EXPECT_EQ(objects.allocate(4096), slab(1));
  EXPECT_EQ(objects.allocate(250), slab(0) + 256);
}

TEST(SmallObjects, FindKnowsEveryByteAndNoneBeyond) {
  small_objects objects;
  objects.add_slab(slab(3));
  std::byte* a = objects.allocate(300);
  std::byte* b = objects.allocate(300);
  EXPECT_EQ(objects.find(a), (object{a, 300}));
  EXPECT_EQ(objects.find(b + 299), (object{b, 300}));
  EXPECT_EQ(objects.find(b + 300), std::nullopt) << "past the end, though inside the slot";
  EXPECT_EQ(objects.find(b + 512), std::nullopt) << "a free slot";
  EXPECT_EQ(objects.find(slab(3) - 1), std::nullopt);
  EXPECT_EQ(objects.find(slab(4)), std::nullopt);
  EXPECT_EQ(objects.free(a), nullptr);
  EXPECT_EQ(objects.find(a), std::nullopt);
}

TEST(SmallObjects, SayWhatCannotBeFreed) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* p = objects.allocate(1000);
  expect_error(HPE_ERROR_NOT_A_REGION, "inside an allocation of 1000 bytes", [&] { objects.free(p + 8); });
  expect_error(HPE_ERROR_NOT_A_REGION, "no allocation", [&] { objects.free(p + 1024); });
  expect_error(HPE_ERROR_NOT_A_REGION, "no allocation", [&] { objects.free(slab(9)); });
  EXPECT_EQ(objects.free(p), slab(0));
  expect_error(HPE_ERROR_NOT_A_REGION, "no allocation", [&] { objects.free(p); });
}

TEST(SmallObjects, EmptySlabsCanBeTakenBackOrServeAnotherSize) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* a = objects.allocate(100);
  std::byte* b = objects.allocate(100);
  EXPECT_FALSE(objects.remove_slab(slab(0)));
  EXPECT_EQ(objects.free(b), nullptr);
  EXPECT_EQ(objects.free(a), slab(0));
  std::byte* c = objects.allocate(9000);
  EXPECT_EQ(c, slab(0));
  EXPECT_FALSE(objects.remove_slab(slab(0))) << "it is in use again";
  EXPECT_EQ(objects.free(c), slab(0));
  EXPECT_TRUE(objects.remove_slab(slab(0)));
  EXPECT_FALSE(objects.remove_slab(slab(0)));
  EXPECT_EQ(objects.allocate(100), nullptr);
}

// The oracle is an ordered map of what is live.
TEST(SmallObjects, AgreeWithAnOracle) {
  small_objects objects;
  std::map<std::byte*, std::size_t> live;
  std::map<std::byte*, std::size_t> in_slab;
  std::size_t next_slab = 0;
  std::size_t removed = 0;
  std::mt19937 random(11);
  for (int step = 0; step < 40000; ++step) {
    const bool growing = step / 5000 % 2 == 0;
    if (live.empty() || random() % 100 < (growing ? 70 : 20)) {
      const std::size_t size = 1 + random() % (std::size_t{1} << (random() % 19));
      std::byte* p = objects.allocate(size);
      while (p == nullptr) {
        in_slab[slab(next_slab)] = 0;
        objects.add_slab(slab(next_slab++));
        p = objects.allocate(size);
      }
      const auto behind = live.lower_bound(p);
      ASSERT_TRUE(behind == live.end() || p + size <= behind->first);
      ASSERT_TRUE(behind == live.begin() || std::prev(behind)->first + std::prev(behind)->second <= p);
      const auto home = std::prev(in_slab.upper_bound(p));
      ASSERT_LE(p + size, home->first + granule_size);
      ++home->second;
      live.emplace(p, size);
    } else {
      auto victim = live.lower_bound(slab(0) + random() % (next_slab * granule_size));
      if (victim == live.end()) victim = live.begin();
      const auto [p, size] = *victim;
      ASSERT_EQ(objects.find(p + random() % size), (object{p, size}));
      const auto home = std::prev(in_slab.upper_bound(p));
      std::byte* emptied = objects.free(p);
      live.erase(victim);
      ASSERT_EQ(emptied, --home->second == 0 ? home->first : nullptr);
      if (emptied != nullptr && random() % 2 == 0) {
        ASSERT_TRUE(objects.remove_slab(emptied));
        in_slab.erase(home);
        ++removed;
      }
      ASSERT_EQ(objects.find(p), std::nullopt);
    }
  }
  EXPECT_GT(removed, 10u);
}

TEST(SmallObjects, ServeSeveralThreads) {
  small_objects objects;
  for (std::size_t i = 0; i < 16; ++i) objects.add_slab(slab(i));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&objects, &wrong, seed] {
      std::mt19937 random(seed);
      std::vector<object> mine;
      for (int i = 0; i < 5000; ++i) {
        if (mine.size() < 50) {
          const std::size_t size = 1 + random() % 3000;
          if (std::byte* p = objects.allocate(size)) mine.push_back({p, size});
        } else {
          const std::size_t which = random() % mine.size();
          if (objects.find(mine[which].base + mine[which].size - 1) != mine[which]) ++wrong;
          objects.free(mine[which].base);
          mine[which] = mine.back();
          mine.pop_back();
        }
      }
      for (const object& o : mine) objects.free(o.base);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_TRUE(objects.remove_slab(slab(i)));
}

}  // namespace
