#pragma once

/// A large copy that several threads make together without a lock: each takes slice after slice. A job is reused for
/// one copy after the other, so a late helper may have read an older copy. Taking a slice fails if the job has another
/// copy by then.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hpe::transfer {

/// How the bytes of a copy are written; see copy_crew.
enum class writing : std::uint8_t { cached, past_caches };

/// `count` rows of `width` bytes; on either side, a pitch is the distance between the starts of two rows.
struct copied_rows {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t width = 0;
  std::size_t count = 0;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
  writing how = writing::cached;

  /// The bytes that a thread copies at once: a part of one row, or several rows of about as many bytes. Small, so that
  /// threads do not wait long for the last slice.
  static constexpr std::size_t slice_bytes = std::size_t{64} << 10;

  [[nodiscard]] std::size_t slice_unit() const noexcept {
    return count == 1 ? slice_bytes : std::max<std::size_t>(1, slice_bytes / std::max<std::size_t>(1, width));
  }
  [[nodiscard]] std::size_t slices() const noexcept {
    return ((count == 1 ? width : count) + slice_unit() - 1) / slice_unit();
  }
  /// The first slice of part p of `parts`; the part ends where the next one begins.
  [[nodiscard]] std::size_t first_slice(unsigned p, unsigned parts) const noexcept { return slices() * p / parts; }
};

/// Memory: os::hardware, or a model of it under which a test tries all interleavings of the steps.
template <class Memory>
class basic_copy_job {
 public:
  /// The most parts of a copy. If there are more threads, some share a part.
  static constexpr unsigned most_parts = 16;

  /// Claims the job for the calling thread. Returns false if another thread has it.
  bool take() noexcept { return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true); }

  /// Posts a copy. Called by the thread that claimed the job.
  void post(const copied_rows& what, unsigned parts) noexcept {
    const std::uint64_t number = ((parts_[0].next.load() >> 32) + 1) << 32;
    for (unsigned p = 0; p < parts; ++p)
      parts_[p].next.store(number | nothing_left);  // no thread takes a slice while the job is written
    to_.store(what.to);
    from_.store(what.from);
    width_.store(what.width);
    count_.store(what.count);
    to_pitch_.store(what.to_pitch);
    from_pitch_.store(what.from_pitch);
    how_.store(what.how);
    finished_.store(0);
    for (unsigned p = 0; p < parts; ++p) parts_[p].next.store(number | what.first_slice(p, parts));
  }

  /// Takes a slice of a part and calls copy(rows, slice). Returns false if none is left. Thread-safe.
  template <class Copy>
  bool take_slice(unsigned part, unsigned parts, Copy copy) noexcept {
    auto& its = parts_[part].next;
    std::uint64_t next = its.load();
    while (true) {
      // Read between the load of `next` and the exchange, which fails if another copy was posted meanwhile.
      const copied_rows what{to_.load(),       from_.load(),       width_.load(), count_.load(),
                             to_pitch_.load(), from_pitch_.load(), how_.load()};
      const std::uint64_t slice = next & nothing_left;
      if (slice >= what.first_slice(part + 1, parts)) return false;
      if (!its.compare_exchange_weak(next, next + 1)) continue;
      copy(what, slice);
      finished_.fetch_add(1);
      return true;
    }
  }

  /// Waits for slices that other threads took, and releases the job. Called by its thread when no slice is left.
  void finish(std::size_t slices) noexcept {
    while (finished_.load() != slices) Memory::relax();
    taken_.store(false);
  }

 private:
  static constexpr std::uint64_t nothing_left = 0xffffffff;
  template <class T>
  using atomic = typename Memory::template atomic<T>;

  struct alignas(64) part {
    atomic<std::uint64_t> next{nothing_left};  // high half: the copy's number; low half: the part's next slice
  };

  alignas(64) atomic<bool> taken_{false};
  atomic<std::byte*> to_{nullptr};
  atomic<const std::byte*> from_{nullptr};
  atomic<std::size_t> width_{0};
  atomic<std::size_t> count_{0};
  atomic<std::size_t> to_pitch_{0};
  atomic<std::size_t> from_pitch_{0};
  atomic<writing> how_{writing::cached};
  atomic<std::size_t> finished_{0};  // slices that are copied
  std::array<part, most_parts> parts_;
};

}  // namespace hpe::transfer
