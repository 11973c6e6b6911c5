// The engine measures GPUs at the first large copy, and keeps the result for later processes. The driver is a stand-in
// with one GPU, which the loader finds first.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "runtime/transfer/engine.h"
#include "tests/temporary_folder.h"
#include "tests/transfer/machine.h"

namespace hpe::transfer {
namespace {

using namespace transfer_test;
using fitting = engine::fitting;

class gpu_calibration : public testing::Test {
 protected:
  gpu_calibration() {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    std::byte* const first = space_.segment_begin(memory::segment_kind::device, 0);
    gpu_->register_host(space_.alias(first), space_.layout().size(), space_.shadow_file(), 0);
  }
  ~gpu_calibration() override { ::unsetenv("XDG_CACHE_HOME"); }

  /// Begins a large copy in a new engine. Returns the size of its chunks then.
  std::size_t chunk_after_a_copy(fitting how) {
    engine move{*gpu_, space_, {.buffer = buffer, .count = 4, .fit = how}, count_};
    const std::vector<std::byte> source(buffer, std::byte{1});
    const staged filled = engine::filled(move.stage(0, source.data(), buffer, buffer));
    return move.staging_size();
  }
  [[nodiscard]] calibration_cache kept() const { return calibration_cache::of(*gpu_, gpu_->at(0).info()); }
  [[nodiscard]] std::optional<calibration> known() const { return kept().load(buffer, most_threads); }

  static constexpr std::size_t buffer = 4 * mib;
  const unsigned most_threads = copy_crew::threads_for_this_machine();

 private:
  const temporary_folder folder_;
  memory::uvas space_{device_test::layout_base, 256 * mib, 1};
  std::unique_ptr<device::device_set> gpu_ = device::open_devices("cuda", space_.layout());
  counters count_;
};

TEST_F(gpu_calibration, is_made_once_and_kept) {
  chunk_after_a_copy(fitting::off);
  EXPECT_FALSE(known());
  const std::size_t measured = chunk_after_a_copy(fitting::once);
  ASSERT_TRUE(known());
  EXPECT_EQ(known()->chunk, measured);
  const calibration other{64 * kib, 1};  // not a result of a measurement
  kept().store(other);
  EXPECT_EQ(chunk_after_a_copy(fitting::once), other.chunk);
  EXPECT_EQ(known(), other);
  EXPECT_NE(chunk_after_a_copy(fitting::again), other.chunk);
  EXPECT_NE(known(), other);
}

}  // namespace
}  // namespace hpe::transfer
