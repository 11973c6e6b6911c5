// Tests copies into an allocation at the same time as copies between devices that do not reach each other. Both kinds
// of copies use the staging buffers.

#include <gtest/gtest.h>

#include "tests/stress/support.h"

namespace {

TEST(stress, NobodyHoldsAnAllocationWhileItWaitsForABuffer) {
  const std::size_t size = std::size_t{8} << 20;
  const int far = hpe::device_count() - 1;
  const hpe::array<std::uint8_t> here(size, hpe::on_device(0));
  const hpe::array<std::uint8_t> there(size, hpe::on_device(far));
  stress::run_state state;
  stress::run_threads(6, state, [&](unsigned number, std::uint64_t) {
    const std::vector<std::uint8_t> ordinary(size / 8, static_cast<std::uint8_t>(number));
    const std::size_t own = number * size / 8;
    for (int round = 0; round < 12; ++round, state.step_done()) {
      if (number % 2 == 0)
        hpe::copy(here.data() + own, ordinary.data(), ordinary.size());
      else
        hpe::copy(there.data() + own, here.data() + own, ordinary.size());
    }
  });
  hpe::synchronize();
}

}  // namespace
