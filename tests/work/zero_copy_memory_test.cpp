// Work that names some of its data and may use all other data (work_usage::only_mapped), on a soft device that has less
// memory than the data needs: data moves to zero-copy memory and back at the same addresses.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/core/runtime.h"
#include "tests/core/test_kernels.h"

namespace hpe::work {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20, bytes = 2 * mebibyte;
constexpr std::uint64_t used = 64;  // the kernel uses so many words of each array

class moves : public ::testing::Test {
 protected:
  moves() {
    ::setenv("HPE_DEVICE_MEMORY", "64M", 1);  // set for devices, which read this variable themselves
    options chosen;
    chosen.devices = "soft:1";
    chosen.segment_size = std::size_t{1} << 30;  // ThreadSanitizer leaves little address space
    runtime_ = std::make_unique<core::runtime>(chosen);
    kernel_ = runtime_->kernels().find(runtime_->kernels().load(HPE_TEST_KERNELS), "increment");
  }
  std::uint32_t* allocate() { return reinterpret_cast<std::uint32_t*>(runtime_->memory().allocate(bytes, 0)); }
  void allocate(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) arrays_.push_back(allocate());
    expected_.resize(count);
  }
  // Adds 1 to words of an array in a launch that names another array, after the earlier launches of the thread.
  void launch(std::uint32_t* array, std::uint32_t* named, timepoint& last) {
    const increment_parameters parameters{array, used, 1, 0};
    const hpeAccess access{named, bytes, HPE_INOUT};
    last = runtime_->kernels().launch(0, kernel_, device::shape{1}, std::as_bytes(std::span(&parameters, 1)),
                                      {.accesses = std::span(&access, 1),
                                       .in_reach = true,
                                       .only_mapped = true,
                                       .unsure = true,
                                       .concurrent = true,
                                       .after = std::span(&last, last.none() ? 0 : 1)});
  }
  void launch(std::size_t n, std::size_t named) {
    launch(arrays_[n], arrays_[named], last_);
    ++expected_[n];
  }
  void check() const {
    for (std::size_t n = 0; n < arrays_.size(); ++n)
      for (std::uint64_t i = 0; i < used; ++i) ASSERT_EQ(arrays_[n][i], expected_[n]) << n << ", " << i;
  }
  [[nodiscard]] double brought_in() const {
    return static_cast<double>(runtime_->count().bytes_brought_in.load()) / static_cast<double>(bytes);
  }

  std::unique_ptr<core::runtime> runtime_;
  hpeKernel kernel_ = nullptr;
  std::vector<std::uint32_t*> arrays_;
  std::vector<std::uint32_t> expected_;
  timepoint last_;
};

// Device memory holds 32 of the 48 arrays. If hpe evicted the least recently used array, each launch would bring in an
// array.
TEST_F(moves, only_arrays_that_do_not_fit_move_in_a_cycle) {
  constexpr std::size_t count = 48, room = 32;
  allocate(count);
  constexpr int periods = 4;
  const auto run = [&] {
    for (int n = 0; n < periods; ++n)
      for (std::size_t a = 0; a < count; ++a) launch(a, a);
  };
  run();
  const double before = brought_in();
  run();
  // Two arrays come in before they are needed, and room for one array stays free.
  EXPECT_LE((brought_in() - before) / periods, static_cast<double>(count - room + 6));
  EXPECT_GE((brought_in() - before) / periods, static_cast<double>(count - room));
  check();
}

TEST_F(moves, work_finds_data_that_it_does_not_name) {
  constexpr std::size_t count = 48;
  allocate(count);
  for (std::size_t n = 0; n < 6 * count; ++n) {
    launch((n * 5 + 1) % count, n % count);
    if (n % 50 == 0) {  // CPU code uses an array that may be in either memory
      runtime_->synchronize(0);
      ASSERT_EQ(arrays_[n % count][0], expected_[n % count]);
      for (std::uint64_t i = 0; i < used; ++i) ++arrays_[n % count][i];
      ++expected_[n % count];
    }
  }
  runtime_->synchronize(0);
  check();
}

// Other threads allocate arrays, and use and free them, while data moves.
TEST_F(moves, other_threads_allocate_and_free_meanwhile) {
  constexpr std::size_t count = 40;
  allocate(count);
  std::atomic<bool> ends{false};
  const auto other = [&](bool named) {
    for (unsigned n = 0; !ends || n < 5; ++n) {
      std::uint32_t* const mine = allocate();
      std::memset(mine, 0, used * sizeof(*mine));
      timepoint last;
      launch(mine, named ? mine : arrays_[n % count], last);
      launch(mine, mine, last);
      static_cast<void>(runtime_->wait(last));
      EXPECT_EQ(mine[used - 1], 2U);
      runtime_->memory().free(reinterpret_cast<std::byte*>(mine));
    }
  };
  std::thread one(other, true), two(other, false);
  for (std::size_t n = 0; n < 5 * count; ++n) launch((n * 7 + 1) % count, n % count);
  ends = true;
  one.join();
  two.join();
  runtime_->synchronize(0);
  check();
}

}  // namespace
}  // namespace hpe::work
