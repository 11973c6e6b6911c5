#pragma once

/// The contexts of the driver. Memory, streams and modules belong to a device and are shared by all contexts of the
/// device, because the runtime has one context for each device. A stream or pointer of either API is valid in the other
/// API. When the last context of a device is destroyed, hpe frees the device's memory and streams, and unloads the
/// modules if the program has no memory on other devices.

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::libcuda {

class device_context {
 public:
  device_context(int device, bool is_primary, unsigned flags, std::uint64_t id)
      : device_(device), is_primary_(is_primary), id_(id), flags_(flags) {}

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] bool is_primary() const noexcept { return is_primary_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] unsigned flags() const noexcept { return flags_; }
  void set_flags(unsigned flags) noexcept { flags_ = flags; }

  /// Whether the context is active: a primary context is active while the program retains it or uses the device through
  /// the runtime, any other context until the program destroys it.
  [[nodiscard]] bool is_active() const noexcept { return is_active_; }
  void set_active(bool active) noexcept { is_active_ = active; }

 private:
  const int device_;
  const bool is_primary_;
  const std::uint64_t id_;
  std::atomic<unsigned> flags_;
  std::atomic<bool> is_active_{true};
};

inline CUcontext handle_of(const device_context& context) {
  return reinterpret_cast<CUcontext>(const_cast<device_context*>(&context));
}

/// Thread-safe. The functions throw `failure`: cudaErrorInvalidDevice for a number that no device has, and
/// cudaErrorDeviceUninitialized (CUDA_ERROR_INVALID_CONTEXT) for an invalid handle.
class context_table {
 public:
  using pointer = std::shared_ptr<device_context>;

  pointer create(int device, unsigned flags);
  void destroy(CUcontext handle);  ///< also pops the context if it is on top of the calling thread's stack
  [[nodiscard]] pointer find(CUcontext handle);

  [[nodiscard]] pointer primary(int device);
  pointer retain_primary(int device);
  void release_primary(int device);
  /// Frees the program's objects on the device, like cudaDeviceReset. The device's contexts that the program has
  /// created or retains stay active.
  void reset_primary(int device);

  /// To be called when the calling thread has used its device through the runtime. Makes the device's primary context
  /// current, unless a context of this device is current already.
  void follow_runtime();

  /// Returns the context on top of the calling thread's stack, even if that context is no longer active; null if the
  /// stack is empty.
  [[nodiscard]] static pointer current();
  static void set_current(const pointer& context);  ///< replaces the top of the stack; null removes it
  static void push(const pointer& context);
  static pointer pop();  ///< throws cudaErrorDeviceUninitialized if the stack is empty

 private:
  struct of_device {
    pointer primary;
    int retained = 0;
    int created = 0;
    bool runtime_uses = false;
  };

  of_device& at(int device) HPE_REQUIRES(mutex_);
  static void end_of_device(const of_device& state, int device);  // resets a device that has no context left

  mutex mutex_;
  std::vector<of_device> devices_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<CUcontext, pointer> known_ HPE_GUARDED_BY(mutex_);
  std::uint64_t made_ HPE_GUARDED_BY(mutex_) = 0;
};

/// Returns the only table in the process, which is never destroyed.
[[nodiscard]] context_table& contexts();

}  // namespace hpe::libcuda
