#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// An allocation in device memory that is not managed, and a context in which its bytes can be copied.
struct program_allocation {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;
};

/// Records the contexts of the program, and queries the driver about memory in these contexts. Thread safe.
class program_contexts {
 public:
  explicit program_contexts(const device::cuda::driver& cu) : cu_(cu) {}

  /// Record the contexts that the program creates in addition to the primary ones, including green contexts, and remove
  /// them from the record. Work on the streams of these contexts may use any memory.
  void add(CUcontext context);
  void remove(CUcontext context);
  void add_green(CUgreenCtx green);
  void remove_green(CUgreenCtx green);

  /// To be called when the program has retained the primary context of a device.
  void retained(CUcontext primary);
  /// Whether the program has used only one context so far, so that a wait for this context covers all work of the
  /// program.
  [[nodiscard]] bool are_one() const noexcept { return one_.load(std::memory_order_acquire); }

  /// Returns the primary context of a device; null if it is not active.
  [[nodiscard]] CUcontext primary_of(CUdevice device) const;
  /// Calls visit(device number, context) for each active primary context.
  template <class Visit>
  void for_each_primary(Visit visit) const {
    int count = 0;
    if (cu_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
    for (int d = 0; d < count; ++d) {
      CUdevice device = 0;
      if (cu_.cuDeviceGet(&device, d) != CUDA_SUCCESS) continue;
      CUcontext const context = retain_active(device);
      if (context == nullptr) continue;
      visit(d, context);
      cu_.cuDevicePrimaryCtxRelease(device);
    }
  }

  /// To be called before the program begins or ends the capture of a stream. The capture is recorded for the stream's
  /// context. Return the number of captures that were added to the record, or removed.
  int begins_capture(CUstream stream);
  int ends_capture(CUstream stream);
  /// To be called before a context is destroyed. Discards the records of its captures, because they end, and a later
  /// context may have the same handle. `which`: null if hpe does not know the context; then all captures. Returns their
  /// number.
  int forget_captures(CUcontext which);

  /// Whether any stream of a context is in a capture.
  [[nodiscard]] bool captures(CUcontext context) const;

  /// Waits for all work that the program has queued, including the work in the context `also` even if that context is
  /// not recorded. Returns the first error, or CUDA_SUCCESS. Does not wait in a context with a captured stream, because
  /// the wait would invalidate the capture; the result of that context is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
  CUresult wait_for_all(CUcontext also);

  /// Waits for a stream of a context. Like wait_for_all, does not wait if a stream of the context is captured.
  CUresult wait_for(CUstream stream, CUcontext context);

  [[nodiscard]] std::optional<program_allocation> device_memory_at(CUdeviceptr address) const;
  /// Returns the size of the allocation that starts at an address; 0 if no allocation starts there.
  [[nodiscard]] std::size_t size_at(CUdeviceptr address) const;

 private:
  const device::cuda::driver& cu_;
  [[nodiscard]] std::vector<CUcontext> made() const;
  /// Retains the primary context of a device, and returns it; returns null if it is not active.
  [[nodiscard]] CUcontext retain_active(CUdevice device) const;

  mutable mutex mutex_;
  CUcontext first_ HPE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> one_{true};
  std::vector<CUcontext> made_ HPE_GUARDED_BY(mutex_);
  std::map<CUgreenCtx, CUcontext> green_ HPE_GUARDED_BY(mutex_);
  std::vector<std::pair<CUstream, CUcontext>> captured_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
