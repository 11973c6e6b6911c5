#pragma once

#include <chrono>
#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::bench {

/// Whether hpe's devices are GPUs. Calls device_info() once and keeps the result: device_info() makes the driver count
/// free memory, which is too slow for loops and for timed code.
[[nodiscard]] inline bool on_gpus() {
  static const bool result = device_info(0).kind == HPE_DEVICE_CUDA;
  return result;
}

/// Keeps all GPUs busy for half a second. A GPU that was idle raises its clocks in the first tens of milliseconds, in
/// which its memory has half the rate or less. Does nothing on soft devices.
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
