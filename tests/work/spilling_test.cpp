// Data larger than host memory, moved by several threads at once through hpe's copies only, so that ThreadSanitizer can
// watch: it sees no page faults, and no writes of other processes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/core/runtime.h"

namespace hpe::work {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t limit = 32 * mebi;        // two granules are read, and two written, at a time
constexpr std::size_t piece = 6 * mebi + 4096;  // of a copy: parts of granules at both ends
constexpr unsigned threads = 4;
constexpr unsigned pieces = 3;  // of each thread; together more than twice the limit
constexpr unsigned rounds = 2;

class spilling : public ::testing::Test {
 protected:
  spilling() {
    std::string name = (std::filesystem::temp_directory_path() / "hpe-spilling-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    ::setenv("HPE_DEVICE_MEMORY", "8M", 1);  // devices read it themselves
    options chosen = options::from_environment();
    chosen.devices = "soft:1";
    chosen.host_memory = limit;
    chosen.spill = folder_.string();
    chosen.segment_size = std::size_t{1} << 30;
    runtime_ = std::make_unique<core::runtime>(chosen);
  }
  ~spilling() override {
    runtime_.reset();
    std::filesystem::remove(folder_);
  }

  static std::byte value(unsigned thread, unsigned n, unsigned round) {
    return static_cast<std::byte>(1 + thread * 50 + n * 10 + round);
  }

  // Every thread has pieces of its own, which lie between those of the others.
  void copy_there_and_back(std::byte* data, unsigned thread) {
    std::vector<std::byte> buffer(piece);
    const auto place = [&](unsigned n) { return data + (n * threads + thread) * piece; };
    for (unsigned round = 0; round < rounds; ++round) {
      for (unsigned n = 0; n < pieces; ++n) {
        std::fill(buffer.begin(), buffer.end(), value(thread, n, round));
        runtime_->copies().copy(place(n), buffer.data(), piece);
      }
      for (unsigned n = 0; n < pieces; ++n) {
        runtime_->copies().copy(buffer.data(), place(n), piece);
        const std::byte expected = value(thread, n, round);
        wrong_ += static_cast<std::size_t>(
            std::count_if(buffer.begin(), buffer.end(), [&](std::byte b) { return b != expected; }));
      }
    }
  }

  std::filesystem::path folder_;
  std::unique_ptr<core::runtime> runtime_;
  std::atomic<std::size_t> wrong_{0};
};

TEST_F(spilling, threads_find_what_they_wrote) {
  std::byte* const data = runtime_->memory().allocate(threads * pieces * piece, 0);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) all.emplace_back([&, t] { copy_there_and_back(data, t); });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(wrong_.load(), 0);
  EXPECT_GT(runtime_->count().bytes_spilled.load(), 0);
  EXPECT_GT(runtime_->count().bytes_unspilled.load(), 0);
  runtime_->memory().free(data);
}

}  // namespace
}  // namespace hpe::work
