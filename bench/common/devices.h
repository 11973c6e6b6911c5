#pragma once

#include <chrono>
#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::bench {

/// Returns whether hpe's devices are GPUs. Calls device_info() only once, because device_info() makes the driver count
/// free memory, which is too slow for loops and for timed code.
[[nodiscard]] inline bool on_gpus() {
  static const bool result = device_info(0).kind == HPE_DEVICE_CUDA;
  return result;
}

/// Writes memory on all GPUs for half a second. An idle GPU raises its clocks only after tens of milliseconds of work;
/// until then, its memory reaches at most half of its bandwidth. Does nothing on soft devices.
inline void warm_up_gpus() {
  if (!on_gpus()) return;
  constexpr std::size_t bytes = std::size_t{1} << 28;
  std::vector<array<std::byte>> filled;
  for (int d = 0; d < device_count(); ++d) filled.emplace_back(bytes, on_device(d));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) {
    for (const array<std::byte>& data : filled)
      for (int i = 0; i < 16; ++i) fill(data.data(), i, bytes);
    synchronize();
  }
}

}  // namespace hpe::bench
