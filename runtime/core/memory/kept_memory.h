#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/uvas.h"

namespace hpe::core {

/// Keeps parts of freed allocations for new ones of the same size: address space with its view mapped (and closed), and
/// host pages that copies find pinned. Making these takes several times as long as filling them over the link of a GPU.
/// The pages hold bytes of the freed allocation. Thread-safe.
class kept_memory {
 public:
  struct mapping {
    memory::segment_allocator* segment = nullptr;
    std::byte* base = nullptr;
    std::uint64_t extent = 0;  ///< bytes of the view
    std::size_t granules = 0;  ///< of address space in the segment
  };

  /// limit: the most bytes kept.
  kept_memory(memory::uvas& space, device::device_set& devices, std::uint64_t limit)
      : space_(space), devices_(devices), limit_(limit) {}

  /// Keeps a mapping that nothing uses any more. Drops the oldest ones if there is too much.
  void keep(const mapping& what) noexcept;
  /// Takes the oldest mapping with this extent, which then belongs to the caller; empty if there is none.
  [[nodiscard]] std::optional<std::byte*> take(const memory::segment_allocator& segment, std::uint64_t extent);
  /// Gives a mapping back to the system. Addresses that the system does not release are not handed out again.
  void drop(const mapping& what) noexcept;
  /// Drops all mappings.
  void clear() noexcept;

 private:
  // Each uses one of the 65,000 mappings that the system gives a process.
  static constexpr std::size_t most_mappings = 256;

  memory::uvas& space_;
  device::device_set& devices_;
  const std::uint64_t limit_;
  /// Closes the view and adds the mapping. Returns false if either fails.
  [[nodiscard]] bool put(const mapping& what) noexcept;
  [[nodiscard]] std::optional<mapping> take_first_above(std::uint64_t bytes, std::size_t mappings) noexcept;

  mutex mutex_;
  std::deque<mapping> mappings_ HPE_GUARDED_BY(mutex_);  // the oldest one first
  std::uint64_t bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::core
