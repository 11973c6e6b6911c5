#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/coherence/region.h"

namespace hpe::coherence {

/// Numbers regions from 1 and owns their objects. A freed number is reused only after many other numbers, so that code
/// with a stale number usually detects the error. Thread-safe; at() takes no lock.
///
/// Each number belongs to a lane (fault/lane.h): the numbers of lane n are those whose remainder modulo the number of
/// lanes is n. If there is one lane, numbers are used consecutively.
class region_table {
 public:
  /// Returns an unused region object that is not alive; its number belongs to lane `lane` (modulo the number of lanes).
  /// Throws HPE_ERROR_OUT_OF_MEMORY if a million numbers exist.
  region& take(unsigned lane = 0);
  /// Puts an object that is no longer alive back into the table.
  void give_back(region& r) noexcept;

  /// `number` must come from take().
  [[nodiscard]] region& at(std::uint32_t number) const noexcept;

  /// The work that may use the memory of any region of the table.
  [[nodiscard]] work_anywhere& anywhere() noexcept { return anywhere_; }

  /// One more than the largest number so far, for loops over all regions.
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }

  struct freed_range {
    const std::byte* base = nullptr;
    std::uint64_t bytes = 0;
  };
  /// Remembers a freed allocation, for error messages.
  void note_freed(freed_range range) noexcept;
  /// Returns the latest of the remembered freed allocations that contained p.
  [[nodiscard]] std::optional<freed_range> freed_at(const void* p) const;

 private:
  static constexpr std::size_t chunk_size = 256;
  static constexpr std::size_t chunk_count = 4096;
  static constexpr std::size_t remembered = 256;
  struct chunk;

  /// A queue of numbers. The successor of each number is stored in its chunk, so inserting allocates no memory.
  struct queue {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::size_t length = 0;
  };
  void put(queue& into, std::uint32_t number) noexcept HPE_REQUIRES(mutex_);
  /// Creates the next number and puts it into the queue of the number's lane.
  void add_number() HPE_REQUIRES(mutex_);

  work_anywhere anywhere_;
  std::array<std::atomic<chunk*>, chunk_count> chunks_{};
  std::array<std::unique_ptr<chunk>, chunk_count> owned_;
  std::atomic<std::uint32_t> limit_{1};

  mutable mutex mutex_;
  std::vector<queue> unused_ HPE_GUARDED_BY(mutex_);     // by lane
  std::vector<queue> untouched_ HPE_GUARDED_BY(mutex_);  // by lane: numbers that were never used
  std::array<freed_range, remembered> freed_ HPE_GUARDED_BY(mutex_);
  std::size_t freed_count_ HPE_GUARDED_BY(mutex_) = 0;  // all so far; the latest is at (freed_count_ - 1) % remembered

 public:
  explicit region_table(unsigned lanes = 1);
  ~region_table();
};

}  // namespace hpe::coherence
