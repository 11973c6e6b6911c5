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

/// Numbers regions from 1 and keeps their objects. A number is used again only after many others, so a stale one is
/// likely to be noticed. at() takes no lock; the rest may be called from any thread.
///
/// Numbers can be dealt out to lanes (fault/lane.h): those of lane n have the remainder n when divided by how many
/// lanes there are. With one lane they are given out one after the other.
class region_table {
 public:
  /// A region object that is nobody's now, with a number of the lane (modulo how many there are); not alive. Throws
  /// HPE_ERROR_OUT_OF_MEMORY when there are a million.
  region& take(unsigned lane = 0);
  /// Gives one back that is not alive.
  void give_back(region& r) noexcept;

  /// number is one that take() gave out.
  [[nodiscard]] region& at(std::uint32_t number) const noexcept;

  /// One more than the largest number in use so far, for walking over all.
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_.load(std::memory_order_acquire); }

  struct freed_range {
    const std::byte* base = nullptr;
    std::uint64_t bytes = 0;
  };
  /// Remembers a freed allocation, for messages.
  void note_freed(freed_range range) noexcept;
  /// The latest freed allocation that contained p, of the last ones.
  [[nodiscard]] std::optional<freed_range> freed_at(const void* p) const;

 private:
  static constexpr std::size_t chunk_size = 256;
  static constexpr std::size_t chunk_count = 4096;
  static constexpr std::size_t remembered = 256;
  struct chunk;

  /// Numbers in a row; each number's successor is in its chunk, so that putting one in takes no memory.
  struct queue {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::size_t length = 0;
  };
  void put(queue& into, std::uint32_t number) noexcept HPE_REQUIRES(mutex_);
  /// Makes the next number, for the lane that it is of.
  void add_number() HPE_REQUIRES(mutex_);

  std::array<std::atomic<chunk*>, chunk_count> chunks_{};
  std::array<std::unique_ptr<chunk>, chunk_count> owned_;
  std::atomic<std::uint32_t> limit_{1};

  mutable mutex mutex_;
  std::vector<queue> unused_ HPE_GUARDED_BY(mutex_);     // by lane
  std::vector<queue> untouched_ HPE_GUARDED_BY(mutex_);  // by lane; nobody's yet
  std::array<freed_range, remembered> freed_ HPE_GUARDED_BY(mutex_);
  std::size_t freed_count_ HPE_GUARDED_BY(mutex_) =
      0;  // of all times; the latest is at (freed_count_ - 1) % remembered

 public:
  explicit region_table(unsigned lanes = 1);
  ~region_table();
};

}  // namespace hpe::coherence
