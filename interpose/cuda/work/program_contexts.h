#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The contexts of the program, and the driver's information about memory in them. Thread safe.
class program_contexts {
 public:
  explicit program_contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Contexts that the program makes in addition to the primary ones, including green contexts: their streams may use
  /// any memory.
  void add(CUcontext context);
  void remove(CUcontext context);
  void add_green(CUgreenCtx green);
  void remove_green(CUgreenCtx green);

  /// The program has retained the primary context of a device.
  void retained(CUcontext primary);
  /// Whether the program has used only one context so far, so that a wait for it is a wait for all work.
  [[nodiscard]] bool are_one() const noexcept { return one_.load(std::memory_order_acquire); }

  /// Calls visit(device number, context) for each primary context that is active.
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

  /// The program captures a stream, or ends that. A capture belongs to the stream's context.
  void begins_capture(CUstream stream);
  void ends_capture(CUstream stream);
  /// A context is about to end, and its captures with it: forgets all captures, because another context may get its
  /// address.
  void forget_captures();

  /// Whether a stream of a context is being captured.
  [[nodiscard]] bool captures(CUcontext context) const;

  /// Waits for all queued work of the program, and in any case for that of `also`. Returns the first error, if any.
  /// Does not wait in a context in which a stream is captured, because that would invalidate the capture: then the
  /// result is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
  CUresult wait_for_all(CUcontext also);

  /// Waits for a stream of a context, with the same exception.
  CUresult wait_for(CUstream stream, CUcontext context);

  /// An allocation in device memory that is not managed, and a context in which it can be copied.
  struct allocation {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;
  };
  [[nodiscard]] std::optional<allocation> device_memory_at(CUdeviceptr address) const;
  /// The size of the allocation that starts at an address; 0 if there is none.
  [[nodiscard]] std::size_t size_at(CUdeviceptr address) const noexcept;

 private:
  const device::cuda::driver& cu_;
  [[nodiscard]] std::vector<CUcontext> made() const;

  mutable mutex mutex_;
  CUcontext first_ HPE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> one_{true};
  std::vector<CUcontext> made_ HPE_GUARDED_BY(mutex_);
  std::map<CUgreenCtx, CUcontext> green_ HPE_GUARDED_BY(mutex_);
  std::vector<std::pair<CUstream, CUcontext>> captured_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
