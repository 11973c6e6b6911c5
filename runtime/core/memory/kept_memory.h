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

/// What freed allocations leave for new ones of the same size: address space with its view mapped (and closed), and
/// host pages that copies find pinned. To make these costs several times what it costs to fill them over the link of a
/// GPU. The pages hold bytes of the allocation that is gone. Any thread.
class kept_memory {
 public:
  struct mapping {
    memory::segment_allocator* segment = nullptr;
    std::byte* base = nullptr;
    std::uint64_t extent = 0;  ///< bytes of the view
    std::size_t granules = 0;  ///< of the segment
  };

  /// limit: the most bytes kept.
  kept_memory(memory::uvas& space, device::device_set& devices, std::uint64_t limit)
      : space_(space), devices_(devices), limit_(limit) {}

  /// Nobody uses the mapping any more. What was kept longest goes when there is too much.
  void keep(const mapping& what) noexcept;
  /// One of that extent, which is the caller's then; the one that was kept longest.
  [[nodiscard]] std::optional<std::byte*> take(const memory::segment_allocator& segment, std::uint64_t extent);
  /// Gives one back to the system. Addresses that it does not let go of are not handed out again.
  void drop(const mapping& what) noexcept;
  /// Keeps nothing any more.
  void clear() noexcept;

 private:
  // Each has a mapping of its own, of which the system gives 65,000.
  static constexpr std::size_t most_mappings = 256;

  memory::uvas& space_;
  device::device_set& devices_;
  const std::uint64_t limit_;
  /// Whether the view could be closed, and the mapping is among those that are kept.
  [[nodiscard]] bool put(const mapping& what) noexcept;
  [[nodiscard]] std::optional<mapping> take_first_above(std::uint64_t bytes, std::size_t mappings) noexcept;

  mutex mutex_;
  std::deque<mapping> mappings_ HPE_GUARDED_BY(mutex_);  // the one that was kept longest first
  std::uint64_t bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::core
