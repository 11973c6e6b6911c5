#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Pinned buffers of one context, through which its streams exchange data with pageable memory and other devices. The
/// context must be current in the constructor and destructor. Thread safe.
class pinned_ring {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{8} << 20;
  static constexpr std::size_t buffer_count = 6;

  /// Throws hpe::error if the driver refuses.
  explicit pinned_ring(const device::cuda::driver& cu);
  /// Waits for the copies that use the buffers.
  ~pinned_ring();
  pinned_ring(const pinned_ring&) = delete;
  pinned_ring& operator=(const pinned_ring&) = delete;
  /// To be called if the context has ended: the buffers no longer exist, so nothing is returned to the driver.
  void abandon() noexcept;

  struct buffer {
    std::byte* data = nullptr;
    CUevent done = nullptr;  ///< recorded after the copies that use the buffer
  };

  /// Takes a buffer whose earlier copies may still run: the caller must wait for `done`. take() waits for a free
  /// buffer, so its caller must not hold another one; try_take() returns an empty one if none is free.
  [[nodiscard]] buffer take();
  [[nodiscard]] buffer try_take();
  void give_back(buffer used);

 private:
  /// Destroys the events and frees the memory.
  void release() noexcept;

  const device::cuda::driver& cu_;
  std::byte* memory_ = nullptr;
  mutex mutex_;
  condition_variable returned_;
  std::vector<buffer> free_ HPE_GUARDED_BY(mutex_);  // in the order of their return
};

}  // namespace hpe::cuda_hooks
