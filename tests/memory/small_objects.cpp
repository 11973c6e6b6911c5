#include "runtime/memory/small_objects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/memory/expect_error.h"

namespace {

thread_local bool out_of_memory = false;

}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): operator delete frees memory of malloc
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (out_of_memory) throw std::bad_alloc();
  if (void* const p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t /*bytes*/) noexcept { std::free(p); }
// NOLINTEND(misc-new-delete-overloads)

namespace {

using namespace hpe;
using memory::small_objects;
using object = small_objects::object;

// Slab memory is never touched, so any addresses are possible.
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
  EXPECT_EQ(objects.free({a, 300}), nullptr);
  EXPECT_EQ(objects.find(a), std::nullopt);
}

TEST(SmallObjects, FindTheNeighbourBeforeAnAddress) {
  small_objects objects;
  EXPECT_EQ(objects.find_before(slab(0)), std::nullopt);
  objects.add_slab(slab(3));
  EXPECT_EQ(objects.find_before(slab(3)), std::nullopt) << "the slab contains no object";
  std::byte* a = objects.allocate(300);
  std::byte* b = objects.allocate(300);
  EXPECT_EQ(objects.find_before(a - 1), std::nullopt);
  EXPECT_EQ(objects.find_before(a), (object{a, 300}));
  EXPECT_EQ(objects.find_before(b - 1), (object{a, 300}));
  EXPECT_EQ(objects.find_before(b + 1000), (object{b, 300}));
  EXPECT_EQ(objects.find_before(slab(5) - 1), (object{b, 300}));
  EXPECT_EQ(objects.find_before(slab(5)), std::nullopt) << "the address is too far behind the slab";
  objects.free({b, 300});
  EXPECT_EQ(objects.find_before(b + 1000), (object{a, 300}));
}

TEST(SmallObjects, ReportAddressesThatCannotBeFreed) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* p = objects.allocate(1000);
  const auto refused = [&](const object& what) {
    expect_error(HPE_ERROR_NOT_A_REGION, "allocation of " + std::to_string(what.size) + " bytes",
                 [&] { objects.free(what); });
  };
  refused({p + 8, 992});
  refused({p + 1024, 1000});
  refused({p, 999});
  refused({slab(9), 1});
  EXPECT_EQ(objects.free({p, 1000}), slab(0));
  refused({p, 1000});
}

TEST(SmallObjects, ThatAreRetiredKeepTheirPlace) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* const first = objects.allocate(small_objects::largest);
  const object retired{first, small_objects::largest};
  objects.retire(retired);
  EXPECT_EQ(objects.find(first), std::nullopt);
  EXPECT_TRUE(objects.alone(retired));
  expect_error(HPE_ERROR_NOT_A_REGION, "was freed by another thread", [&] { objects.retire(retired); });
  EXPECT_FALSE(objects.remove_slab(slab(0)));
  std::byte* another = objects.allocate(small_objects::largest);
  EXPECT_FALSE(objects.alone(retired));
  while (another != nullptr) {
    EXPECT_NE(another, first);
    another = objects.allocate(small_objects::largest);
  }
  objects.revive(retired);
  EXPECT_EQ(objects.find(first), retired);
  objects.retire(retired);
  EXPECT_EQ(objects.free(retired), nullptr);
  EXPECT_EQ(objects.allocate(small_objects::largest), first);
}

TEST(SmallObjects, EmptySlabsCanBeTakenBackOrServeAnotherSize) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* a = objects.allocate(100);
  std::byte* b = objects.allocate(100);
  EXPECT_FALSE(objects.remove_slab(slab(0)));
  EXPECT_EQ(objects.free({b, 100}), nullptr);
  EXPECT_EQ(objects.free({a, 100}), slab(0));
  std::byte* c = objects.allocate(9000);
  EXPECT_EQ(c, slab(0));
  EXPECT_FALSE(objects.remove_slab(slab(0))) << "the slab contains an object again";
  EXPECT_EQ(objects.free({c, 9000}), slab(0));
  EXPECT_TRUE(objects.remove_slab(slab(0)));
  EXPECT_FALSE(objects.remove_slab(slab(0)));
  EXPECT_EQ(objects.allocate(100), nullptr);
}

TEST(SmallObjects, ASlabThatWasTakenBackCanBeAddedAgain) {
  small_objects objects;
  for (int round = 0; round < 3; ++round) {
    objects.add_slab(slab(0));
    std::byte* const p = objects.allocate(100);
    EXPECT_EQ(p, slab(0));
    EXPECT_EQ(objects.find_before(slab(0) + 100), (object{p, 100}));
    EXPECT_EQ(objects.free({p, 100}), slab(0));
    EXPECT_TRUE(objects.remove_slab(slab(0)));
    EXPECT_EQ(objects.find_before(slab(0) + 100), std::nullopt);
  }
}

// Addresses before the first slab, behind the last slot of a slab and between two slabs, for sizes that divide a
// granule and for sizes that do not.
TEST(SmallObjects, AddressesOutsideOfTheSlotsAreUnknown) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{100}, std::size_t{3000}, small_objects::largest}) {
    small_objects objects;
    const auto unknown = [&](std::byte* base) {
      const object what{base, size};
      EXPECT_EQ(objects.find(base), std::nullopt);
      EXPECT_FALSE(objects.alone(what));
      expect_error(HPE_ERROR_NOT_A_REGION, "was freed by another thread", [&] { objects.free(what); });
      expect_error(HPE_ERROR_NOT_A_REGION, "was freed by another thread", [&] { objects.retire(what); });
      expect_error(HPE_ERROR_NOT_A_REGION, "was freed by another thread", [&] { objects.revive(what); });
    };
    unknown(slab(1));
    objects.add_slab(slab(1));
    unknown(slab(1));
    std::byte* const first = objects.allocate(size);
    std::byte* last = first;
    std::size_t slots = 1;
    while (std::byte* const p = objects.allocate(size)) last = p, ++slots;
    const auto step = static_cast<std::size_t>(last - first) / (slots - 1);
    unknown(slab(0));
    unknown(slab(1) - step);
    unknown(last + step);
    unknown(slab(2));
    unknown(slab(3));
    EXPECT_EQ(objects.find_before(last + step), (object{last, size}));
    EXPECT_EQ(objects.find(last), (object{last, size}));
  }
}

TEST(SmallObjects, AreFreedWithoutMemory) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::vector<std::byte*> all;
  while (std::byte* const p = objects.allocate(small_objects::largest)) all.push_back(p);
  out_of_memory = true;
  std::byte* empty = nullptr;
  for (std::byte* const p : all) empty = objects.free({p, small_objects::largest});
  const bool removed = empty != nullptr && objects.remove_slab(empty);
  out_of_memory = false;
  EXPECT_EQ(empty, slab(0));
  EXPECT_TRUE(removed);
}

TEST(SmallObjects, WithoutMemoryForTheirTablesLeaveASlabEmpty) {
  small_objects objects;
  const auto refused = [](const auto& call) {
    out_of_memory = true;
    bool result = false;
    try {
      call();
    } catch (const std::bad_alloc&) {
      result = true;
    }
    out_of_memory = false;
    return result;
  };
  EXPECT_TRUE(refused([&] { objects.add_slab(slab(0)); }));
  EXPECT_FALSE(objects.remove_slab(slab(0))) << "a refused slab must not be in the table";
  objects.add_slab(slab(0));
  EXPECT_TRUE(refused([&] { static_cast<void>(objects.allocate(100)); }));
  EXPECT_TRUE(objects.remove_slab(slab(0)));
}

TEST(SmallObjects, TellWhetherOneIsAloneInItsSlab) {
  small_objects objects;
  objects.add_slab(slab(0));
  std::byte* const a = objects.allocate(100);
  EXPECT_TRUE(objects.alone({a, 100}));
  EXPECT_FALSE(objects.alone({a, 99})) << "no such object";
  std::byte* const b = objects.allocate(100);
  EXPECT_FALSE(objects.alone({a, 100}));
  objects.free({a, 100});
  EXPECT_TRUE(objects.alone({b, 100}));
  EXPECT_FALSE(objects.alone({a, 100})) << "it was freed";
}

// The oracle is an ordered map of live objects.
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
      std::byte* emptied = objects.free({p, size});
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
          objects.free(mine[which]);
          mine[which] = mine.back();
          mine.pop_back();
        }
      }
      for (const object& o : mine) objects.free(o);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_TRUE(objects.remove_slab(slab(i)));
}

}  // namespace
