#include "bench/common/processor_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "tests/core/kernels.h"

namespace hpe::bench {
namespace {

// Returns the processor time of the soft devices: all processor time less that of this process.
double seconds_of_devices() {
  const double all = processor_seconds();
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return all - static_cast<double>(own.tv_sec) - 1e-9 * static_cast<double>(own.tv_nsec);
}

TEST(processor_time, counts_the_work_of_soft_devices) {
  ::setenv("HPE_DEVICES", "soft:1", 1);
  const hpe::array<std::uint32_t> a(1 << 20);
  const auto run = [&] {
    for (int i = 0; i < 20; ++i)
      hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 1, 0}, hpe::inout(a));
    hpe::synchronize();
  };
  run();
  const double before = seconds_of_devices();
  EXPECT_GT(before, 0);
  run();
  EXPECT_GT(seconds_of_devices(), before);
}

}  // namespace
}  // namespace hpe::bench
