// Work that names some of its data and may use all other data (work_usage::only_mapped), on a soft device that has less
// memory than the data needs: data moves to zero-copy memory and back at the same addresses.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/runtime.h"
#include "tests/core/test_kernels.h"
#include "tests/temporary_folder.h"

namespace hpe::work {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20, bytes = 2 * mebibyte;
constexpr std::uint64_t used = 64;  // the kernel uses so many words of each array

class moves : public ::testing::Test {
 protected:
  // host_memory, spill: as the options
  explicit moves(std::size_t host_memory = 0, const std::string& spill = {}) {
    ::setenv("HPE_DEVICE_MEMORY", "64M", 1);  // set for devices, which read this variable themselves
    options chosen;
    chosen.devices = "soft:1";
    chosen.host_memory = host_memory;
    chosen.spill = spill;
    chosen.segment_size = std::size_t{1} << 30;  // ThreadSanitizer leaves little address space
    runtime_ = std::make_unique<core::runtime>(chosen);
    kernel_ = runtime_->kernels().find(runtime_->kernels().load(HPE_TEST_KERNELS), "increment");
  }
  std::uint32_t* allocate() { return reinterpret_cast<std::uint32_t*>(runtime_->memory().allocate(bytes, 0)); }
  void allocate(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) arrays_.push_back(allocate());
    expected_.resize(arrays_.size());
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

// Of 32 MiB of host memory, zero-copy memory gets at most 24 MiB. Device memory holds 32 arrays, and zero-copy memory
// 12 arrays.
class folder_for_data {
 protected:
  const temporary_folder folder_;
};
class moves_with_a_limit : folder_for_data, public moves {
 protected:
  static constexpr std::size_t together = 44;
  moves_with_a_limit() : moves(32 * mebibyte, folder_.path()) {}

  // Adds 1 to words of an array in a launch that uses only the arrays from `first` to the end of the list.
  void launch_alone(std::size_t n, std::size_t first, bool zero_copy = false) {
    const increment_parameters parameters{arrays_[n], used, 1, 0};
    std::vector<hpeAccess> all;
    for (std::size_t a = first; a < arrays_.size(); ++a) all.push_back({arrays_[a], bytes, HPE_INOUT});
    last_ = runtime_->kernels().launch(0, kernel_, device::shape{1}, std::as_bytes(std::span(&parameters, 1)),
                                       {.accesses = all,
                                        .concurrent = true,
                                        .zero_copy = zero_copy,
                                        .after = std::span(&last_, last_.none() ? 0 : 1)});
    ++expected_[n];
  }
  // Returns the message of the refusal; empty if the launch is not refused.
  std::string refusal_of(std::size_t n) {
    try {
      launch(n, n);
    } catch (const error& e) {
      EXPECT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY) << e.what();
      return e.what();
    }
    return {};
  }
  void free_from(std::size_t count) {
    for (; arrays_.size() > count; arrays_.pop_back())
      runtime_->memory().free(reinterpret_cast<std::byte*>(arrays_.back()));
    expected_.resize(count);
  }
  [[nodiscard]] std::uint64_t spilled() const { return runtime_->count().bytes_spilled.load(); }
};

TEST_F(moves_with_a_limit, data_that_work_does_not_name_goes_to_the_file) {
  allocate(together);
  for (std::size_t n = 0; n < together; ++n) launch((n * 7 + 1) % together, n);
  allocate(together);
  for (std::size_t n = together; n < 2 * together; ++n) {
    runtime_->copies().fill(arrays_[n], 0, bytes);
    const std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t), expected_[n] = static_cast<std::uint32_t>(n));
    runtime_->copies().copy(arrays_[n], words.data(), bytes);
  }
  check();
  EXPECT_GT(spilled(), 0U);
  const std::uint64_t moved = runtime_->count().bytes_brought_in.load();
  const std::string refused = refusal_of(0);
  for (const char* const part : {"HPE_HOST_MEMORY leaves", "too few", "--scope args"})
    EXPECT_NE(refused.find(part), std::string::npos) << part << " is not in " << refused;
  EXPECT_EQ(runtime_->count().bytes_brought_in.load(), moved) << "hpe knows before moves that the data does not fit";
  check();
  free_from(together);
  for (std::size_t n = 0; n < 2 * together; ++n) launch((n * 11 + 1) % together, n % together);
  runtime_->synchronize(0);
  check();
}

// The data of a launch is larger than the device's memory. Other data gives its zero-copy memory to this data.
TEST_F(moves_with_a_limit, work_that_names_much_data_takes_the_zero_copy_memory_of_other_data) {
  allocate(together);
  for (std::size_t n = 0; n < together; ++n) launch(n, n);
  allocate(40);
  for (std::size_t n = 0; n < 3; ++n) launch_alone(together + n, together, true);
  check();
  allocate(10);
  EXPECT_THROW(launch_alone(together, together, true), error);  // 50 arrays
  check();
}

TEST_F(moves_with_a_limit, other_threads_allocate_and_free_meanwhile) {
  allocate(together - 4);
  std::atomic<bool> ends{false};
  const auto other = [&](std::size_t count) {
    for (unsigned n = 0; !ends || n < 2; ++n) {
      std::vector<std::uint32_t*> mine(count);
      for (std::uint32_t*& each : mine) each = allocate();
      std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t));
      for (std::size_t a = 0; a < count; ++a) {
        std::ranges::fill(words, static_cast<std::uint32_t>(n + a));
        runtime_->copies().copy(mine[a], words.data(), bytes);
      }
      for (std::size_t a = 0; a < count; ++a) {
        runtime_->copies().copy(words.data(), mine[a], bytes);
        EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(words, static_cast<std::uint32_t>(n + a))), words.size());
        runtime_->memory().free(reinterpret_cast<std::byte*>(mine[a]));
      }
    }
  };
  std::thread one(other, 3), two(other, 12);
  std::size_t refused = 0;
  for (std::size_t n = 0; n < 4 * arrays_.size(); ++n) try {
      launch((n * 7 + 1) % arrays_.size(), n % arrays_.size());
    } catch (const error& e) {
      EXPECT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY) << e.what();
      ++refused;
    }
  ends = true;
  one.join();
  two.join();
  runtime_->synchronize(0);
  check();
  RecordProperty("refused", std::to_string(refused));
}

}  // namespace
}  // namespace hpe::work
