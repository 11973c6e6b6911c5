#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "interpose/gpu/spread/joined_gpus.h"
#include "runtime/base/thread_safety.h"
#include "runtime/spread/model/launch.h"

namespace hpe::cuda_hooks {

/// Describes the driver's allocations for the program to the planner of launches (core::launch_planner). The planner
/// cannot move these allocations. Thread-safe.
class driver_memory {
 public:
  driver_memory(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  struct found {
    spread::kernel_array what;
    bool of_pool = false;  // whether the memory is of the default pool: other GPUs can use it only after share_pool()
  };
  /// Returns the allocation that contains an address; null for host memory. If other GPUs may be unable to use the
  /// memory, also returns null, and sets `obstacle` to the reason.
  [[nodiscard]] std::shared_ptr<const found> describe(CUdeviceptr address, std::string& obstacle);
  /// Lets the other GPUs use the memory of the default pool. If the driver refuses, returns the reason why a launch
  /// with this memory must run on one GPU, as a clause that begins with "it"; otherwise an empty string.
  [[nodiscard]] std::string share_pool();
  /// To be called when the program frees memory that the driver allocated.
  void forget(CUdeviceptr address);
  /// To be called before a context ends, with which the driver frees the context's memory.
  void forget_all();

 private:
  /// Returns the default pool of GPU 0; null if the driver has none.
  [[nodiscard]] CUmemoryPool default_pool() const;

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::atomic<bool> shares_pool_{false};
  mutex mutex_;
  using table = std::map<CUdeviceptr, std::shared_ptr<const found>>;  // the key is the end of the allocation
  [[nodiscard]] table::iterator find(CUdeviceptr address) HPE_REQUIRES(mutex_);
  table known_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
