#include "runtime/device/cuda/cuda_gate.h"

#include "runtime/device/cuda/cuda_set.h"

namespace hpe::device::cuda {

void cuda_gate::ring() noexcept {
  rings_.fetch_add(1);
  if (asleep_.load()) os::futex_wake_all(rings_);
}

void cuda_gate::sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  for (;;) {
    const std::uint32_t rings = rings_.load();
    if (rings != seen_) {
      seen_ = rings;
      return;
    }
    if (std::any_of(points.begin(), points.end(), [&](timepoint p) { return set_.reached(p); })) return;
    const auto now = clock::now();
    if (now >= deadline) return;
    if (now - begin < (points.empty() ? polling::awake_without_work : polling::awake)) {
      __builtin_ia32_pause();
      continue;
    }
    asleep_.store(true);
    os::futex_wait_until(rings_, rings,
                         points.empty() ? deadline : std::min(deadline, now + polling::pause(now - begin)));
    asleep_.store(false);
  }
}

}  // namespace hpe::device::cuda
