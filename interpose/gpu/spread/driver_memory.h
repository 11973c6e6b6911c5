#pragma once

#include <map>
#include <optional>
#include <string>

#include "interpose/gpu/spread/joined_gpus.h"
#include "runtime/base/thread_safety.h"
#include "runtime/spread/launch.h"

namespace hpe::cuda_hooks {

/// Describes the driver's allocations for the program to the planner of launches (core::launch_planner). The planner
/// cannot move these allocations. Thread-safe.
class driver_memory {
 public:
  driver_memory(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  /// Returns the allocation that contains an address; nullopt for host memory. If other GPUs may be unable to use the
  /// memory, also returns nullopt, and sets `obstacle` to the reason.
  [[nodiscard]] std::optional<spread::allocation> describe(CUdeviceptr address, std::string& obstacle);
  /// To be called when the program frees memory that the driver allocated. Discards all descriptions.
  void forget();

 private:
  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  mutex mutex_;
  std::map<CUdeviceptr, spread::allocation> known_ HPE_GUARDED_BY(mutex_);  // the key is the end of the allocation
};

}  // namespace hpe::cuda_hooks
