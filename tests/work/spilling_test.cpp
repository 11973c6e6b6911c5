// Data larger than host memory, moved by several threads at once through hpe's copies only. So ThreadSanitizer can
// check all accesses. It could check neither accesses by page faults nor writes of other processes.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/core/runtime.h"
#include "tests/operator_new.h"
#include "tests/temporary_folder.h"

namespace {

// True while a test counts the concurrent reads of the file; each read then waits for a second read.
std::atomic<bool> reads_meet{false};
std::atomic<int> reads_under_way{0};
std::atomic<int> most_reads{0};

}  // namespace

namespace {

thread_local unsigned calls_left = 0;  // until a call of operator new of this thread throws; 0: no call throws
thread_local bool has_thrown = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (calls_left != 0 && --calls_left == 0) {
    has_thrown = true;
    throw std::bad_alloc();
  }
  return allocate_by_malloc(bytes, alignment);
}

void release(void* p) noexcept { std::free(p); }

}  // namespace

// Replaces the C library's function in this program.
extern "C" ssize_t pread(int file, void* into, std::size_t bytes, off_t at) {
  const int now = ++reads_under_way;
  for (int most = most_reads; most < now && !most_reads.compare_exchange_weak(most, now);) {
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (reads_meet && most_reads < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  const ssize_t result = ::syscall(SYS_pread64, file, into, bytes, at);
  --reads_under_way;
  return result;
}

namespace hpe::work {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;
// With this limit, hpe reads two granules and writes two granules at a time.
constexpr std::size_t limit = 32 * mebi;
constexpr std::size_t copy_size = 6 * mebi + 4096;  // the bytes of a copy, which begins and ends inside granules
constexpr unsigned threads = 4;
constexpr unsigned copies = 3;  // copies of each thread; all copies together have more than twice the limit
constexpr unsigned rounds = 2;

class spilling : public ::testing::Test {
 protected:
  explicit spilling(const char* device_memory = "8M") {
    ::setenv("HPE_DEVICE_MEMORY", device_memory, 1);  // set for devices, which read this variable themselves
    options chosen = options::from_environment();
    chosen.devices = "soft:1";
    chosen.host_memory = limit;
    chosen.spill = folder_.path();
    chosen.segment_size = std::size_t{1} << 30;
    runtime_ = std::make_unique<core::runtime>(chosen);
  }
  ~spilling() override {
    runtime_.reset();
    EXPECT_TRUE(folder_.is_empty()) << "the spill file has no name";
  }

  static std::byte value(unsigned thread, unsigned n, unsigned round) {
    return static_cast<std::byte>(1 + thread * 50 + n * 10 + round);
  }

  // Each thread has its own copies, which are interleaved with those of the other threads.
  void copy_there_and_back(std::byte* data, unsigned thread) {
    std::vector<std::byte> buffer(copy_size);
    const auto place = [&](unsigned n) { return data + (n * threads + thread) * copy_size; };
    for (unsigned round = 0; round < rounds; ++round) {
      for (unsigned n = 0; n < copies; ++n) {
        std::fill(buffer.begin(), buffer.end(), value(thread, n, round));
        runtime_->copies().copy(place(n), buffer.data(), copy_size);
      }
      for (unsigned n = 0; n < copies; ++n) {
        runtime_->copies().copy(buffer.data(), place(n), copy_size);
        const std::byte expected = value(thread, n, round);
        wrong_ += static_cast<std::size_t>(
            std::count_if(buffer.begin(), buffer.end(), [&](std::byte b) { return b != expected; }));
      }
    }
  }

  const temporary_folder folder_;
  std::unique_ptr<core::runtime> runtime_;
  std::atomic<std::size_t> wrong_{0};
};

TEST_F(spilling, threads_find_what_they_wrote) {
  std::byte* const data = runtime_->memory().allocate(threads * copies * copy_size, 0);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) all.emplace_back([&, t] { copy_there_and_back(data, t); });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(wrong_.load(), 0);
  EXPECT_GT(runtime_->count().bytes_spilled.load(), 0);
  EXPECT_GT(runtime_->count().bytes_unspilled.load(), 0);
  runtime_->memory().free(data);
}

// Each allocation of a fill fails once. The fill changes a part of a block whose other bytes are in the file. If a
// failed fill left a region locked, the next fill would wait forever.
TEST_F(spilling, a_fill_that_fails_for_lack_of_memory_changes_nothing) {
  constexpr std::size_t bytes = 4096, granules = 40;
  std::byte* const data = runtime_->memory().allocate(granules * granule_size, 0);
  std::vector<std::byte> buffer(granule_size, std::byte{7});
  for (std::size_t g = 0; g < granules; ++g)
    runtime_->copies().copy(data + g * granule_size, buffer.data(), granule_size);
  unsigned failures = 0;
  bool fired = true;
  for (unsigned k = 1; fired; ++k) {
    std::byte* const place = data + k * 7 % granules * granule_size + k * bytes;
    calls_left = k;
    has_thrown = false;
    try {
      runtime_->copies().fill(place, 1, bytes);
    } catch (const std::exception&) {
      ++failures;
    }
    calls_left = 0;
    fired = has_thrown;
    runtime_->copies().fill(place, 2, bytes);
    runtime_->copies().copy(buffer.data(), place - bytes, 3 * bytes);
    for (std::size_t at = 0; at < 3 * bytes; ++at)
      ASSERT_EQ(buffer[at], at < bytes || at >= 2 * bytes ? std::byte{7} : std::byte{2})
          << "call " << k << ", byte " << at;
  }
  EXPECT_GT(failures, 3U);
  runtime_->memory().free(data);
}

// Tests copies of 4 MiB at once, an eighth of the device's memory.
class spilling_of_larger_copies : public spilling {
 protected:
  spilling_of_larger_copies() : spilling("32M") {}
};

TEST_F(spilling_of_larger_copies, read_several_granules_of_the_file_at_the_same_time) {
  constexpr std::size_t needed = 2 * granule_size;
  std::byte* const data = runtime_->memory().allocate(3 * limit, 0);
  std::byte* const copy = runtime_->memory().allocate(needed, 0);
  std::vector<std::byte> buffer(needed);
  for (std::size_t at = 0; at < 3 * limit; at += needed) {
    std::fill(buffer.begin(), buffer.end(), static_cast<std::byte>(1 + at / needed));
    runtime_->copies().copy(data + at, buffer.data(), needed);
  }
  const std::uint64_t before = runtime_->count().bytes_unspilled;
  most_reads = 0;
  reads_meet = true;
  runtime_->copies().copy(copy, data, needed);
  reads_meet = false;
  EXPECT_GE(runtime_->count().bytes_unspilled - before, needed);
  EXPECT_GE(most_reads.load(), 2);
  runtime_->copies().copy(buffer.data(), copy, needed);
  EXPECT_EQ(std::count(buffer.begin(), buffer.end(), std::byte{1}), needed);
  runtime_->memory().free(copy);
  runtime_->memory().free(data);
}

}  // namespace
}  // namespace hpe::work
