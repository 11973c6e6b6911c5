#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "interpose/soft/cudart/memory/memory_pool.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "tests/interpose/soft/cudart/code_of.h"
#include "tests/interpose/soft/cudart/gate.h"

namespace hpe::cudart {
namespace {

using testing::code_of;

/// A memory source that allocates a limited amount of ordinary memory.
class heap final : public memory_source {
 public:
  heap(std::atomic<std::int64_t>& taken, std::int64_t limit) : taken_(taken), limit_(limit) {}
  void* allocate(std::size_t bytes) override {
    if (taken_ + static_cast<std::int64_t>(bytes) > limit_) return nullptr;
    taken_ += static_cast<std::int64_t>(bytes);
    auto* const block = static_cast<std::size_t*>(std::malloc(bytes + sizeof(std::size_t)));
    *block = bytes;
    return block + 1;
  }
  void free(void* block) override {
    auto* const begin = static_cast<std::size_t*>(block) - 1;
    taken_ -= static_cast<std::int64_t>(*begin);
    std::free(begin);
  }

 private:
  std::atomic<std::int64_t>& taken_;
  const std::int64_t limit_;
};

TEST(PoolOfBlocks, NoTwoUsersHaveABlockAtOnce) {
  std::atomic<std::int64_t> taken{0};
  {
    memory_pool pool(std::make_unique<heap>(taken, 4 << 20), 0, 0);
    stream_table table(1);
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        const auto where = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
        for (int i = 0; i < 300; ++i) {
          const std::size_t size = 512 * (1 + random() % 20);
          auto* const block = static_cast<unsigned char*>(pool.allocate(size, *where));
          EXPECT_EQ(where->enqueue([=] {
            std::memset(block, t, size);
            return cudaSuccess;
          }),
                    cudaSuccess);
          EXPECT_EQ(where->enqueue([=] {
            for (std::size_t b = 0; b < size; ++b) {
              if (block[b] != t) return cudaErrorUnknown;  // fails if the bytes also belong to another allocation
            }
            return cudaSuccess;
          }),
                    cudaSuccess);
          pool.free(block, *where);
          if (i % 50 == 0) pool.trim(0);
        }
        EXPECT_EQ(where->synchronize(), cudaSuccess);
      });
    }
    for (auto& each : threads) each.join();
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrUsedMemCurrent), 0U);
    EXPECT_EQ(pool.attribute(cudaMemPoolAttrReservedMemCurrent), static_cast<std::uint64_t>(taken.load()));
  }
  EXPECT_EQ(taken, 0);
}

TEST(PoolOfBlocks, WaitsForFreesWhenThereIsNoMemoryLeft) {
  std::atomic<std::int64_t> taken{0};
  memory_pool pool(std::make_unique<heap>(taken, 1 << 20), 0, 0);
  device_streams device(0);
  const auto a = device.create(cudaStreamNonBlocking, 0);
  const auto b = device.create(cudaStreamNonBlocking, 0);
  void* const first = pool.allocate(1 << 20, *a);
  EXPECT_EQ(code_of([&] { pool.allocate(512, *b); }), cudaErrorMemoryAllocation);
  testing::gate closed;
  a->enqueue(closed.as_task());
  pool.free(first, *a);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    closed.open();
  });
  void* const second = pool.allocate(1 << 20, *b);
  EXPECT_EQ(a->query(), cudaSuccess);
  pool.free(second, *b);
  opener.join();
  EXPECT_EQ(code_of([&] { pool.free(second, *b); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { pool.allocate(0, *b); }), cudaErrorInvalidValue);
}

/// Returns the amounts of memory that a program reads from the pool's attributes.
std::array<std::uint64_t, 4> amounts_of(const memory_pool& pool) {
  return {pool.attribute(cudaMemPoolAttrUsedMemCurrent), pool.attribute(cudaMemPoolAttrUsedMemHigh),
          pool.attribute(cudaMemPoolAttrReservedMemCurrent), pool.attribute(cudaMemPoolAttrReservedMemHigh)};
}

TEST(PoolOfBlocks, RandomSizesAreServedAndCountedAsByAModel) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::atomic<std::int64_t> taken{0};
  memory_pool pool(std::make_unique<heap>(taken, std::int64_t{1} << 40), 0, 0);
  stream_table table(1);
  const auto where = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  struct model_block {
    std::size_t size, requested;
  };
  std::map<void*, model_block> used;
  std::vector<std::pair<void*, std::size_t>> idle;
  std::array<std::uint64_t, 4> expected{};
  auto& [now, most, reserved, most_reserved] = expected;
  for (int step = 0; step < 3000; ++step) {
    const auto kind = random() % 16;
    if (kind < 8) {
      const std::size_t granules = 1 + random() % 12;
      const std::size_t bytes = 512 * granules - std::array<std::size_t, 4>{0, 1, 511, 256}[random() % 4];
      const std::size_t size = (bytes + 511) / 512 * 512;
      void* const block = pool.allocate(bytes, *where);
      ASSERT_FALSE(used.contains(block));
      // The pool must choose the smallest idle block that is large enough and at least half filled by the allocation.
      std::size_t best = 0;
      for (const auto& [base, each] : idle)
        if (each >= size && each / 2 <= size && (best == 0 || each < best)) best = each;
      const auto found = std::ranges::find(idle, block, [](const auto& each) { return each.first; });
      ASSERT_EQ(found != idle.end() ? found->second : 0, best);
      if (best == 0) reserved += size;
      if (best != 0) idle.erase(found);
      used[block] = {best != 0 ? best : size, size};
      now += size;
    } else if (kind < 14 && !used.empty()) {
      const auto gone = std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size()));
      pool.free(gone->first, *where);
      EXPECT_EQ(code_of([&] { pool.free(gone->first, *where); }), cudaErrorInvalidValue);
      now -= gone->second.requested;
      idle.emplace_back(gone->first, gone->second.size);
      used.erase(gone);
    } else if (kind == 14) {
      ASSERT_EQ(where->synchronize(), cudaSuccess);
      const std::size_t keep = random() % 3 == 0 ? reserved : random() % (reserved + 1);
      // Blocks are returned in the order in which they were freed, until at most `keep` bytes are left.
      std::erase_if(idle, [&](const auto& each) {
        if (reserved <= keep) return false;
        reserved -= each.second;
        return true;
      });
      if (random() % 2 == 0) {
        pool.trim(keep);
      } else {
        pool.set_attribute(cudaMemPoolAttrReleaseThreshold, keep);
        EXPECT_EQ(pool.attribute(cudaMemPoolAttrReleaseThreshold), keep);
        pool.release_excess();
      }
    } else {
      const bool of_used = random() % 2 == 0;
      pool.set_attribute(of_used ? cudaMemPoolAttrUsedMemHigh : cudaMemPoolAttrReservedMemHigh, 0);
      (of_used ? most : most_reserved) = of_used ? now : reserved;
    }
    most = std::max(most, now);
    most_reserved = std::max(most_reserved, reserved);
    ASSERT_EQ(amounts_of(pool), expected);
    ASSERT_EQ(static_cast<std::uint64_t>(taken), reserved);
  }
  for (const auto& each : used) pool.free(each.first);
}

TEST(PoolOfBlocks, StaysBelowItsGreatestSize) {
  std::atomic<std::int64_t> taken{0};
  memory_pool pool(std::make_unique<heap>(taken, 1 << 20), 0, 2048);
  stream_table table(1);
  const auto where = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  void* const first = pool.allocate(1024, *where);
  void* const second = pool.allocate(1024, *where);  // now the pool has exactly its maximum size
  EXPECT_EQ(code_of([&] { pool.allocate(1, *where); }), cudaErrorMemoryAllocation);
  pool.free(first);
  pool.free(second);
  void* const whole = pool.allocate(2048, *where);  // both free blocks are too small, so they are returned
  EXPECT_EQ(amounts_of(pool), (std::array<std::uint64_t, 4>{2048, 2048, 2048, 2048}));
  EXPECT_EQ(taken, 2048);
  pool.free(whole);
  EXPECT_EQ(code_of([&] { pool.allocate(0, *where); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { pool.allocate(SIZE_MAX, *where); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { pool.allocate(SIZE_MAX - 512, *where); }), cudaErrorMemoryAllocation);
}

TEST(PoolOfBlocks, TakesBlocksOfOtherStreamsOnceTheyAreDoneAndOnlyIfThatIsAllowed) {
  std::atomic<std::int64_t> taken{0};
  memory_pool pool(std::make_unique<heap>(taken, 1 << 20), 0, 0);
  stream_table table(1);
  const auto one = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  const auto other = table.find(table.create(0, cudaStreamNonBlocking, 0), 0);
  EXPECT_EQ(pool.attribute(cudaMemPoolReuseAllowOpportunistic), 1U);
  void* const block = pool.allocate(512, *one);
  pool.free(block, *one);
  ASSERT_EQ(one->synchronize(), cudaSuccess);
  pool.set_attribute(cudaMemPoolReuseAllowOpportunistic, 0);
  void* const fresh = pool.allocate(512, *other);
  EXPECT_NE(fresh, block);
  pool.set_attribute(cudaMemPoolReuseAllowOpportunistic, 1);
  EXPECT_EQ(pool.allocate(512, *other), block);
  pool.free(fresh);
  pool.free(block);
}

TEST(PoolOfBlocks, TellsTheAttributesThatItWasGiven) {
  std::atomic<std::int64_t> taken{0};
  memory_pool pool(std::make_unique<heap>(taken, 1 << 20), 3, 0);
  EXPECT_EQ(pool.device(), 3);
  EXPECT_EQ(pool.attribute(cudaMemPoolAttrReleaseThreshold), 0U);
  for (const auto flag : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                          cudaMemPoolReuseAllowInternalDependencies}) {
    EXPECT_EQ(pool.attribute(flag), 1U);
    pool.set_attribute(flag, 0);
    for (const auto each : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                            cudaMemPoolReuseAllowInternalDependencies})
      EXPECT_EQ(pool.attribute(each), each == flag ? 0U : 1U);
    pool.set_attribute(flag, 7);
    EXPECT_EQ(pool.attribute(flag), 1U);
  }
  EXPECT_EQ(code_of([&] { pool.set_attribute(cudaMemPoolAttrUsedMemHigh, 1); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { pool.set_attribute(cudaMemPoolAttrReservedMemHigh, 1); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { pool.set_attribute(cudaMemPoolAttrUsedMemCurrent, 0); }), cudaErrorInvalidValue);
  EXPECT_EQ(code_of([&] { static_cast<void>(pool.attribute(static_cast<cudaMemPoolAttr>(99))); }),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hpe::cudart
