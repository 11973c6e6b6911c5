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

/// Host memory that a loan_pool lends. Every device can copy directly from it and to it. Owned by one thread at a time;
/// movable. The destructor returns the memory; the next borrower waits for the device work passed to busy_until.
class HPE_API loan {
 public:
  loan() noexcept = default;
  loan(loan&& other) noexcept;
  loan& operator=(loan&& other) noexcept;
  loan(const loan&) = delete;
  loan& operator=(const loan&) = delete;
  ~loan();

  /// Returns the lent memory; nullptr if nothing was lent.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  void busy_until(timepoint point) { busy_.add(point); }
  /// The device work queued so far that uses the memory.
  [[nodiscard]] const coherence::point_set& busy() const noexcept { return busy_; }

 private:
  friend class loan_pool;
  loan_pool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::byte* memory_ = nullptr;
  unsigned size_class_ = 0;
  coherence::point_set busy_;
};

/// Lends memory in the upper half of the UVAS's runtime segment, whose alias is registered with all devices. The sizes
/// of loans are rounded up to powers of two. Up to a limit (512 MiB), returned memory is kept for later loans. Beyond
/// the limit, the pages of returned memory are released to the system, except loans smaller than a granule, which are
/// always kept. Thread-safe.
class loan_pool {
 public:
  /// staging: the number of bytes that staging buffers occupy at the beginning of the segment.
  loan_pool(device::device_set& devices, memory::uvas& space, std::size_t staging);

  /// Lends at least `bytes` bytes, at an address that equals `like` modulo 4096, so that code that depends on the
  /// alignment of `like` also works with the lent memory. Throws HPE_ERROR_OUT_OF_MEMORY.
  [[nodiscard]] loan take(std::size_t bytes, const void* like);

 private:
  friend class loan;
  static constexpr unsigned smallest = 13;  // the smallest loan has 2^13 bytes: one page for the bytes, one for the
                                            // alignment
  static constexpr unsigned largest = 44;

  struct returned_loan {
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
  std::array<std::deque<returned_loan>, largest + 1> free_ HPE_GUARDED_BY(mutex_);
  std::size_t idle_ HPE_GUARDED_BY(mutex_) = 0;  // bytes in free_
};

}  // namespace hpe::core
