#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"

namespace hpe::transfer {

/// A ring of equal buffers in registered host memory, through which pageable memory and devices without peer access
/// exchange data. Any thread may take a buffer, fill or empty it, and give it back with the timepoint of the last
/// device work that uses it; the next taker waits until that is reached.
class staging_ring {
 public:
  staging_ring(device::device_set& devices, std::byte* memory, std::size_t buffer_size, std::size_t count);

  [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }

  /// Takes a buffer for the caller alone: one whose device work is done or, if there is none, the one given back first,
  /// after a wait for its work. take waits for a buffer, so its caller must hold no other, or all callers might wait
  /// for each other; try_take gives nullptr if all are taken.
  [[nodiscard]] std::byte* take();
  [[nodiscard]] std::byte* try_take();
  void give_back(std::byte* buffer, timepoint busy_until) noexcept;

 private:
  struct entry {
    std::byte* buffer = nullptr;
    timepoint busy_until{};
  };

  /// Removes the best entry of free_, which is not empty.
  entry take_best() HPE_REQUIRES(mutex_);
  /// Waits for the entry's device work, without the lock, so that other threads can take and return buffers.
  std::byte* ready(const entry& taken);

  device::device_set& devices_;
  const std::size_t buffer_size_;
  mutex mutex_;
  condition_variable returned_;
  std::vector<entry> free_ HPE_GUARDED_BY(mutex_);  // has room for all buffers; the one given back first is first
};

/// The size of the next piece of a copy through staging buffers, after `done` bytes and with `left` to go; at most
/// `most` (a buffer). Nothing overlaps with filling the first buffer and emptying the last one, so pieces grow from 512
/// KiB and shrink to it again. Between, they are large, because the copy threads meet once for each piece.
[[nodiscard]] std::size_t next_piece(std::size_t done, std::size_t left, std::size_t most) noexcept;

/// A staging buffer on loan: host memory for bytes on their way to or from a device. Destroying the object gives the
/// buffer back to the ring. Owned by one thread; movable.
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
  /// The last device work so far that uses the buffer.
  void busy_until(timepoint point) noexcept { busy_until_ = point; }
  [[nodiscard]] timepoint busy_until() const noexcept { return busy_until_; }

 private:
  staging_ring* ring_;
  std::byte* data_;
  std::size_t size_;
  timepoint busy_until_{};
};

}  // namespace hpe::transfer
