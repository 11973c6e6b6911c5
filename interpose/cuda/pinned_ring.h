#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Pinned buffers of one context, through which its streams exchange data with pageable memory and with other devices.
/// Made and destroyed with the context current. Any thread.
class pinned_ring {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{8} << 20;
  static constexpr std::size_t buffer_count = 6;

  /// Throws what the driver refuses.
  explicit pinned_ring(const device::cuda::driver& cu);
  /// Waits for the copies that use the buffers.
  ~pinned_ring();
  pinned_ring(const pinned_ring&) = delete;
  pinned_ring& operator=(const pinned_ring&) = delete;
  /// The context has ended, and taken everything along: nothing is given back to the driver.
  void abandon() noexcept;

  struct buffer {
    std::byte* data = nullptr;
    CUevent done = nullptr;  ///< recorded behind the copies that use it
  };

  /// A buffer for the caller alone, whose earlier copies may still run: the caller waits for `done`. take waits until
  /// there is one, and its caller holds no other; try_take gives an empty one then.
  [[nodiscard]] buffer take();
  [[nodiscard]] buffer try_take();
  void give_back(buffer used);

 private:
  const device::cuda::driver& cu_;
  std::byte* memory_ = nullptr;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<buffer> free_;  // the one that was given back first is first
};

}  // namespace hpe::cuda_hooks
