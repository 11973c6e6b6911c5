#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"

namespace hpe::transfer {

/// A ring of equal buffers in registered host memory, through which pageable memory and devices without peer access
/// exchange data. Any thread takes a buffer, fills or empties it, and gives it back with the timepoint of the last
/// device work that uses it; the next taker gets it when that is reached.
class staging_ring {
 public:
  staging_ring(device::device_set& devices, std::byte* memory, std::size_t buffer_size, std::size_t count);

  [[nodiscard]] std::size_t buffer_size() const noexcept { return buffer_size_; }

  /// A buffer nobody uses, for the caller alone: one whose device work is done if there is such, else the one that is
  /// next, when its work is done. take waits for one, and its caller holds no other (or all callers
  /// might wait for each other); try_take gives nullptr when all are taken.
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
  /// Waits for the entry's device work. Without the lock, so that others can take and give back meanwhile.
  std::byte* ready(const entry& taken);

  device::device_set& devices_;
  const std::size_t buffer_size_;
  mutex mutex_;
  condition_variable returned_;
  std::vector<entry> free_ HPE_GUARDED_BY(mutex_);  // with room for all; the one whose work was queued first is first
};

/// How many bytes of a copy through staging buffers go next, at most `most` (a buffer), after `done` bytes and with
/// `left` to go. The filling of the first buffer or the emptying of the last one is overlapped with nothing, so pieces
/// grow from 512 KiB and shrink to it again; in between they are large, because each costs the copy threads a meeting.
[[nodiscard]] std::size_t next_piece(std::size_t done, std::size_t left, std::size_t most) noexcept;

/// A staging buffer on loan: some bytes of host memory on their way to or from a device. It finds its way back to the
/// ring when it is destroyed. Owned by one thread; movable.
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
  /// The last device work that uses it, so far.
  void busy_until(timepoint point) noexcept { busy_until_ = point; }
  [[nodiscard]] timepoint busy_until() const noexcept { return busy_until_; }

 private:
  staging_ring* ring_;
  std::byte* data_;
  std::size_t size_;
  timepoint busy_until_{};
};

}  // namespace hpe::transfer
