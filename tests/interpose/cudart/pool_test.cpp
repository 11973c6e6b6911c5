#include "interpose/cudart/memory/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "interpose/cudart/stream/stream_table.h"
#include "tests/interpose/cudart/code_of.h"
#include "tests/interpose/cudart/gate.h"

namespace hpe::cudart {
namespace {

using testing::code_of;

/// A limited amount of ordinary memory.
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
              if (block[b] != t) return cudaErrorUnknown;  // another allocation has these bytes too
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
  a->enqueue(closed.as_work());
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

}  // namespace
}  // namespace hpe::cudart
