#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"

namespace hpe::transfer {

/// A ring of equal buffers in registered host memory, for copies between devices and pageable memory and between
/// devices without peer access. Any thread may take a buffer, fill or empty the buffer, and return it to the ring with
/// the timepoint of the last device work that uses it. The next thread that takes the buffer waits until that timepoint
/// is reached.
class staging_ring {
 public:
  staging_ring(device::device_set& devices, std::byte* memory, std::size_t buffer_size, std::size_t count);

  [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }

  /// Takes a buffer, which the caller then owns. If the device work of a free buffer has finished, takes that buffer.
  /// Otherwise takes the free buffer that was returned first, and waits for the buffer's device work. `take` waits for
  /// a free buffer, so its caller must hold no other buffer, or all callers might wait for each other. `try_take`
  /// returns nullptr if no buffer is free.
  [[nodiscard]] std::byte* take();
  [[nodiscard]] std::byte* try_take();
  void give_back(std::byte* buffer, timepoint busy_until) noexcept;

 private:
  struct returned_buffer {
    std::byte* buffer = nullptr;
    timepoint busy_until{};
  };

  /// Removes a buffer from free_, which must not be empty: a buffer whose device work has finished or, if there is
  /// none, the first buffer.
  returned_buffer take_best() HPE_REQUIRES(mutex_);
  /// Waits for the buffer's device work and returns the buffer's memory. The caller must not hold the lock, so that
  /// other threads can take and return buffers.
  std::byte* ready(const returned_buffer& taken);

  device::device_set& devices_;
  const std::size_t buffer_size_;
  mutex mutex_;
  condition_variable returned_;
  std::vector<returned_buffer> free_
      HPE_GUARDED_BY(mutex_);  // free buffers in the order of their return; has capacity for all
};

/// The size of the next chunk of a copy through staging buffers, when `done` bytes are copied and `left` bytes are not;
/// at most `most`, the size of a buffer. While the first buffer is filled and while the last one is emptied, no other
/// chunk is transferred. Therefore the sizes of chunks grow from 512 KiB and shrink back to 512 KiB. Chunks in the
/// middle are large, because the copy threads synchronise once for each chunk.
[[nodiscard]] std::size_t next_chunk(std::size_t done, std::size_t left, std::size_t most) noexcept;

/// A borrowed staging buffer: host memory for bytes that are copied to or from a device. The destructor returns the
/// buffer to the ring. Owned by one thread; movable.
class staged {
 public:
  staged(staging_ring& ring, std::byte* data, std::size_t size) noexcept : ring_(&ring), data_(data), size_(size) {}
  staged(staged&& other) noexcept;
  staged& operator=(staged&&) = delete;
  staged(const staged&) = delete;
  staged& operator=(const staged&) = delete;
  ~staged();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Sets the timepoint of the last device work that uses the buffer.
  void busy_until(timepoint point) noexcept { busy_until_ = point; }
  [[nodiscard]] timepoint busy_until() const noexcept { return busy_until_; }

 private:
  staging_ring* ring_;
  std::byte* data_;
  std::size_t size_;
  timepoint busy_until_{};
};

}  // namespace hpe::transfer
