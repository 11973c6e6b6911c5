#pragma once

/// A large copy that several threads make together without a lock: each thread claims one slice after another. A job is
/// reused for later copies, so a slow helper may have read the description of an earlier copy. If so, the helper's
/// claim of a slice fails.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/box.h"

namespace hpe::transfer {

/// How the bytes of a copy are written; see copy_crew.
enum class writing : std::uint8_t { cached, past_caches, to_new_pages };

/// A copy of one row or of the rows of one plane.
struct posted_copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  box_copy shape;
  writing how = writing::cached;

  /// Each slice is the unit that one thread copies: a part of one row, or several rows with about as many bytes. Slices
  /// are small, so that threads do not wait long for the last slice.
  static constexpr std::size_t slice_bytes = std::size_t{64} << 10;
  /// In new memory, each slice has the size of a huge page: if several threads made one huge page at the same time, all
  /// but one would clear it in vain.
  static constexpr std::size_t slice_of_new_pages = std::size_t{2} << 20;

  [[nodiscard]] std::size_t slice_unit() const noexcept {
    return shape.extent.rows == 1
               ? (how == writing::to_new_pages ? slice_of_new_pages : slice_bytes)
               : std::max<std::size_t>(1, slice_bytes / std::max<std::size_t>(1, shape.extent.width));
  }
  [[nodiscard]] std::size_t slices() const noexcept {
    return ((shape.extent.rows == 1 ? shape.extent.width : shape.extent.rows) + slice_unit() - 1) / slice_unit();
  }
  /// The first slice of part p if the copy has `parts` parts; a part ends where the next part begins.
  [[nodiscard]] std::size_t first_slice(unsigned p, unsigned parts) const noexcept { return slices() * p / parts; }
};

/// Memory: os::hardware, or a model of memory with which a test runs all interleavings of the steps.
template <class Memory>
class basic_copy_job {
 public:
  /// The largest number of parts of a copy. If more threads than this help, some of them share a part.
  static constexpr unsigned most_parts = 16;

  /// Claims the job for a copy of the calling thread. Returns false if another thread has claimed it.
  bool take() noexcept { return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true); }

  /// Publishes a copy, so that other threads can claim its slices. Only the thread that claimed the job may call it.
  void post(const posted_copy& what, unsigned parts) noexcept {
    const std::uint64_t number = ((parts_[0].next.load() >> 32) + 1) << 32;
    for (unsigned p = 0; p < parts; ++p)
      parts_[p].next.store(number | nothing_left);  // no thread can claim a slice while the description is written
    to_.store(what.to);
    from_.store(what.from);
    width_.store(what.shape.extent.width);
    rows_.store(what.shape.extent.rows);
    to_row_.store(what.shape.to.row);
    from_row_.store(what.shape.from.row);
    how_.store(what.how);
    finished_.store(0);
    for (unsigned p = 0; p < parts; ++p) parts_[p].next.store(number | what.first_slice(p, parts));
  }

  /// Claims the next slice of a part and calls copy(posted copy, slice). Returns false if the part has no slice left.
  /// Thread-safe.
  template <class Copy>
  bool take_slice(unsigned part, unsigned parts, Copy copy) noexcept {
    auto& its = parts_[part].next;
    std::uint64_t next = its.load();
    while (true) {
      // The description is read after `next` and before the exchange. The exchange fails if another copy was posted in
      // between.
      const posted_copy what{to_.load(),
                             from_.load(),
                             {{width_.load(), rows_.load(), 1}, {to_row_.load(), 0}, {from_row_.load(), 0}},
                             how_.load()};
      const std::uint64_t slice = next & nothing_left;
      if (slice >= what.first_slice(part + 1, parts)) return false;
      if (!its.compare_exchange_weak(next, next + 1)) continue;
      copy(what, slice);
      finished_.fetch_add(1);
      return true;
    }
  }

  /// Waits for the slices that other threads have claimed, and releases the job. Only the thread that claimed the job
  /// may call it, when no slice is left to claim.
  void finish(std::size_t slices) noexcept {
    while (finished_.load() != slices) Memory::relax();
    taken_.store(false);
  }

 private:
  static constexpr std::uint64_t nothing_left = 0xffffffff;
  template <class T>
  using atomic = typename Memory::template atomic<T>;

  struct alignas(64) slice_counter {
    atomic<std::uint64_t> next{nothing_left};  // high half: number of the copy; low half: next slice of the part
  };

  alignas(64) atomic<bool> taken_{false};
  atomic<std::byte*> to_{nullptr};
  atomic<const std::byte*> from_{nullptr};
  atomic<std::size_t> width_{0};
  atomic<std::size_t> rows_{0};
  atomic<std::size_t> to_row_{0};  // bytes from one row to the next
  atomic<std::size_t> from_row_{0};
  atomic<writing> how_{writing::cached};
  atomic<std::size_t> finished_{0};  // the number of slices that have been copied
  std::array<slice_counter, most_parts> parts_;
};

}  // namespace hpe::transfer
