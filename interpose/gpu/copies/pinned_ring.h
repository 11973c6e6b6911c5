#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Owns pinned staging buffers in one context, for copies between the context's device and pageable memory or other
/// devices. The context must be current during construction and destruction. Thread safe.
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
  /// To be called if the context has ended. The driver has freed the buffers with the context, so the destructor does
  /// not free them.
  void abandon() noexcept;

  class loan;
  /// Lend a buffer, which earlier copies may be using (see loan::wait). take() waits until a buffer is free, so a
  /// thread that calls take() must not hold another buffer. try_take() lends only a buffer that no copy on another
  /// stream than `user` is using, because such a copy may wait for the calling thread; if there is none, the loan is
  /// empty.
  [[nodiscard]] loan take();
  [[nodiscard]] loan try_take(CUstream user);

 private:
  struct buffer {
    std::byte* data = nullptr;
    CUevent done = nullptr;   // an event that is recorded after the copies that use the buffer
    CUstream user = nullptr;  // the stream on which this event was recorded
  };
  buffer remove(std::vector<buffer>::iterator which) HPE_REQUIRES(mutex_);
  void give_back(buffer used) noexcept;
  /// Destroys the events and frees the memory.
  void release() noexcept;

  const device::cuda::driver& cu_;
  std::byte* memory_ = nullptr;
  mutex mutex_;
  condition_variable returned_;
  std::vector<buffer> free_ HPE_GUARDED_BY(mutex_);  // in the order of their return; capacity for all buffers
};

/// A buffer that one copy uses. The destructor returns the buffer to the ring, which must outlive the loan. Only one
/// thread may use the object at a time.
class pinned_ring::loan {
 public:
  loan() = default;
  loan(loan&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)), lent_(std::exchange(other.lent_, {})) {}
  loan& operator=(loan&& other) noexcept {
    std::swap(ring_, other.ring_);
    std::swap(lent_, other.lent_);
    return *this;
  }
  ~loan() {
    if (ring_ != nullptr) ring_->give_back(lent_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return ring_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return lent_.data; }
  /// The event that is recorded after the copies that use the buffer.
  [[nodiscard]] CUevent done() const noexcept { return lent_.done; }
  /// Waits until the copies that use the buffer are done.
  [[nodiscard]] CUresult wait() const { return ring_->cu_.cuEventSynchronize(lent_.done); }
  /// Records the buffer's event on the stream, so that the next user of the buffer waits for all work queued on the
  /// stream so far. If the driver cannot record the event, this function itself waits for this work and returns the
  /// driver's error.
  [[nodiscard]] CUresult used_by(CUstream stream);

 private:
  friend pinned_ring;
  loan(pinned_ring& ring, buffer lent) noexcept : ring_(&ring), lent_(lent) {}

  pinned_ring* ring_ = nullptr;
  buffer lent_;
};

}  // namespace hpe::cuda_hooks
