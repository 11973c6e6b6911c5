#pragma once

#include <array>
#include <deque>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/point_set.h"
#include "runtime/device/device.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/uvas.h"

namespace hpe::core {

class loan_pool;

/// Host memory on loan that every device copies from and to directly. Owned by one thread at a time; movable. The
/// destructor gives the memory back; its next taker waits for the device work named by busy_until.
class HPE_API loan {
 public:
  loan() noexcept = default;
  loan(loan&& other) noexcept;
  loan& operator=(loan&& other) noexcept;
  loan(const loan&) = delete;
  loan& operator=(const loan&) = delete;
  ~loan();

  /// nullptr if nothing was lent.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  void busy_until(timepoint point) { busy_.add(point); }
  /// The device work that was queued on it so far.
  [[nodiscard]] const coherence::point_set& busy() const noexcept { return busy_; }

 private:
  friend class loan_pool;
  loan_pool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::byte* memory_ = nullptr;
  unsigned size_class_ = 0;
  coherence::point_set busy_;
};

/// Lends memory of the upper half of the UVAS's runtime segment, whose alias is registered with all devices. Sizes are
/// powers of two. Returned memory is kept for the next taker up to a limit; beyond it the pages are given back to the
/// system. Thread-safe.
class loan_pool {
 public:
  /// staging: the bytes of the segment that staging buffers take, from its beginning.
  loan_pool(device::device_set& devices, memory::uvas& space, std::size_t staging);

  /// Lends at least `bytes` bytes at an address with the same remainder modulo 4096 as `like`, so that code which
  /// depends on alignment finds that of the original. Throws HPE_ERROR_OUT_OF_MEMORY.
  [[nodiscard]] loan take(std::size_t bytes, const void* like);

 private:
  friend class loan;
  static constexpr unsigned smallest = 13;  // 8 KiB: a page, and the remainder
  static constexpr unsigned largest = 44;

  struct entry {
    std::byte* memory;
    coherence::point_set busy;
  };

  std::byte* take_free(unsigned size_class);
  std::byte* make(unsigned size_class);
  void give_back(std::byte* memory, unsigned size_class, coherence::point_set busy) noexcept;
  void discard(std::byte* memory, unsigned size_class, const coherence::point_set& busy);

  device::device_set& devices_;
  memory::uvas& space_;
  memory::segment_allocator segment_;
  mutex mutex_;
  std::array<std::deque<entry>, largest + 1> free_ HPE_GUARDED_BY(mutex_);
  std::size_t idle_ HPE_GUARDED_BY(mutex_) = 0;  // bytes in free_
};

}  // namespace hpe::core
