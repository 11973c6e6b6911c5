#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The contexts of the program, and what the driver says of memory in them. Any thread.
class program_contexts {
 public:
  explicit program_contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Contexts that the program made besides the primary ones, green ones too: their streams may use any memory.
  void add(CUcontext context);
  void remove(CUcontext context);
  void add_green(CUgreenCtx green);
  void remove_green(CUgreenCtx green);

  /// The program uses the primary context of a device.
  void retained(CUcontext primary);
  /// Whether all that the program has used so far are one, so that a wait for it is a wait for all.
  [[nodiscard]] bool are_one() const noexcept { return one_.load(std::memory_order_acquire); }

  /// visit(number of the device, context), for those that the program uses now.
  template <class Visit>
  void for_each_primary(Visit visit) const {
    int count = 0;
    if (cu_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
    for (int d = 0; d < count; ++d) {
      CUdevice device = 0;
      unsigned flags = 0;
      int active = 0;
      CUcontext context = nullptr;
      if (cu_.cuDeviceGet(&device, d) != CUDA_SUCCESS ||
          cu_.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
          cu_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
        continue;
      visit(d, context);
      cu_.cuDevicePrimaryCtxRelease(device);
    }
  }

  /// Waits for all work of the program that is queued, in `also` in any case. The first failure, if there is one.
  CUresult wait_for_all(CUcontext also);

  /// An allocation on a device that is not managed memory, and the context to copy it in.
  struct allocation {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;
  };
  [[nodiscard]] std::optional<allocation> device_memory_at(CUdeviceptr address) const;
  /// The bytes of whatever starts at an address, 0 if nothing does.
  [[nodiscard]] std::size_t size_at(CUdeviceptr address) const noexcept;

 private:
  const device::cuda::driver& cu_;
  [[nodiscard]] std::vector<CUcontext> made() const;

  mutable std::mutex mutex_;
  CUcontext first_ = nullptr;
  std::atomic<bool> one_{true};
  std::vector<CUcontext> made_;
  std::map<CUgreenCtx, CUcontext> green_;
};

}  // namespace hpe::cuda_hooks
