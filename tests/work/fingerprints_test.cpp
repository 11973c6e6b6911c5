// Work whose kernel hpe does not know may leave memory as it is. hpe then evicts the memory without a copy, and never
// loses a change.

#include "runtime/work/fingerprints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "runtime/core/runtime.h"
#include "runtime/device/cuda/fingerprint_kernel.h"
#include "runtime/work/submission.h"

namespace hpe::work {
namespace {

using coherence::point_set;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::byte old_byte{3};
constexpr std::byte new_byte{2};  // differs in one bit

class unsure_work : public ::testing::Test {
 protected:
  explicit unsure_work(std::size_t size = 6 * mebi, const char* device_memory = "6M") : bytes(size) {
    options chosen;
    chosen.devices = "soft:1";
    chosen.rolling_window = 0;
    ::setenv("HPE_DEVICE_MEMORY", device_memory, 1);  // set for devices, which read this variable themselves
    runtime_ = std::make_unique<core::runtime>(chosen);
    ::unsetenv("HPE_DEVICE_MEMORY");
    data_ = runtime_->memory().allocate(bytes, 0);
    other_ = runtime_->memory().allocate(bytes, 0);
    std::fill(data_, data_ + bytes, old_byte);
    write(0, old_byte);  // tells hpe that there is such work
    write(other_, 0, old_byte, false, {0, bytes});
  }

  /// Queues work that may use a part of an array, and writes one byte of it on the device.
  void write(std::byte* array, std::size_t at, std::byte value, bool unsure, coherence::byte_range part) {
    coherence::region& r = runtime_->regions().at(runtime_->granules().find(array).region);
    device_access access{&r, part, HPE_INOUT};
    access.concurrent = access.unsure = unsure;
    submission work(runtime_->resources(), {access});
    work.submit([&](const point_set& after) {
      return runtime_->resources().engine.fill(0, array + at, std::to_integer<std::uint8_t>(value), 1, after.points());
    });
  }
  void write(std::size_t at, std::byte value) { write(data_, at, value, true, {0, bytes}); }
  /// Returns how many bytes of the array hpe copied to the host.
  std::uint64_t evict() {
    const std::uint64_t evicted = runtime_->count().bytes_evicted;
    const std::uint64_t before = runtime_->count().bytes_written_back;
    write(other_, 0, old_byte, false, {0, bytes});
    EXPECT_GE(runtime_->count().bytes_evicted - evicted, bytes);
    const std::uint64_t copied = runtime_->count().bytes_written_back - before;
    std::fill(other_, other_ + bytes, std::byte{1});  // the next eviction need not copy this array
    return copied;
  }
  void expect(std::size_t at, std::byte value) const {
    for (std::size_t n = 0; n < bytes; n += 64) ASSERT_EQ(data_[n], n == at ? value : old_byte) << n;
  }

  const std::size_t bytes;  // of each array; with the default, one of the arrays fits in device memory
  std::unique_ptr<core::runtime> runtime_;
  std::byte* data_ = nullptr;
  std::byte* other_ = nullptr;
};

TEST_F(unsure_work, that_writes_what_was_there_causes_no_copy) {
  for (int n = 0; n < 3; ++n) {
    write(64, old_byte);
    write(bytes - 64, old_byte);
    EXPECT_EQ(evict(), 0U);
  }
  expect(64, old_byte);
}

TEST_F(unsure_work, that_changes_one_bit_causes_a_copy_of_the_piece) {
  for (const std::size_t at : {std::size_t{0}, 3 * mebi - 64, bytes - 64}) {
    write(at, new_byte);
    const std::uint64_t copied = evict();
    EXPECT_GT(copied, 0U);
    EXPECT_LE(copied, 2 * mebi);
    expect(at, new_byte);
    write(at, old_byte);
    EXPECT_GT(evict(), 0U);
    expect(at, old_byte);
  }
}

TEST_F(unsure_work, that_changes_bytes_back_after_the_host_has_read_them) {
  write(128, new_byte);
  ASSERT_EQ(data_[128], new_byte);
  write(128, old_byte);
  evict();
  expect(128, old_byte);
}

class much_unsure_work : public unsure_work {
 protected:
  much_unsure_work() : unsure_work(24 * mebi, "32M") {}
};

// Pieces often change back. hpe copies some pieces to the host before it needs their memory.
TEST_F(much_unsure_work, never_loses_a_change_whatever_comes) {
  std::mt19937 random(11);
  constexpr std::size_t piece = 2 * mebi;
  const std::size_t pieces = bytes / piece;
  std::vector<std::byte> expected(pieces, old_byte);
  for (int n = 0; n < 800; ++n) {
    const std::size_t at = random() % pieces;
    const coherence::byte_range part{at * piece, (at + 1) * piece};
    const std::byte value = random() % 2 == 0 ? new_byte : old_byte;
    switch (random() % 12) {
      case 0: data_[part.begin] = expected[at] = value; break;
      case 1: ASSERT_EQ(data_[part.begin], expected[at]) << n; break;
      case 2: write(data_, part.begin, expected[at] = value, true, {0, bytes}); break;
      case 3:
      case 4:
      case 5:
      case 6: write(data_, part.begin, expected[at] = value, true, part); break;
      default: write(other_, part.begin, old_byte, random() % 2 == 0, part);
    }
  }
  for (std::size_t at = 0; at < pieces; ++at) ASSERT_EQ(data_[at * piece], expected[at]) << at;
}

TEST_F(unsure_work, that_changes_bytes_back_which_the_host_has_written) {
  write(0, old_byte);
  data_[128] = new_byte;
  write(128, old_byte);
  evict();
  expect(128, old_byte);
}

// Runs the kernel of GPUs on a soft device.
TEST(fingerprints, the_kernel_of_gpus_computes_the_same_as_the_host) {
  options chosen;
  chosen.devices = "soft:1";
  core::runtime runtime(chosen);
  std::byte* const data = runtime.memory().allocate(granule_size, 0);
  for (std::size_t n = 0; n < granule_size; ++n) data[n] = static_cast<std::byte>(n * n >> 7);
  hpeModule module = runtime.ptx().load({device::cuda::fingerprint_ptx});
  hpeKernel kernel = runtime.kernels().find(module, device::cuda::fingerprint_kernel_name);
  const auto sums = runtime.ptx().find_variable(module, device::cuda::fingerprint_sums_name, 0);
  device::shape shape;
  shape.grid[0] = 3;
  shape.block[0] = device::cuda::fingerprint_threads;
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{4096}, std::size_t{64} << 10}) {
    runtime.copies().fill(sums.address, 0, sums.size);
    const device::cuda::fingerprint_parameters parameters{reinterpret_cast<std::uintptr_t>(data),
                                                          bytes / device::fingerprint_unit, 7, 9};
    runtime.ptx().launch(0, kernel, shape, std::as_bytes(std::span(&parameters, 1)), {.everything = true});
    device::fingerprint got;
    runtime.copies().copy(&got, sums.address, sizeof got);
    device::fingerprint_sum sum({7, 9});
    sum.add(data, bytes);
    EXPECT_EQ(got, sum.value()) << bytes;
  }
}

}  // namespace
}  // namespace hpe::work
