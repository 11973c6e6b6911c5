#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"
#include "runtime/memory/segment_allocator.h"
#include "runtime/memory/uvas.h"

namespace hpe::core {

/// Keeps address space of freed allocations whose host pages exist, for new allocations of any size: copies find the
/// pages pinned, and making them takes several times as long as filling them over the link of a GPU. Thread-safe.
class kept_memory {
 public:
  /// Address space of a segment that belongs to the caller.
  struct space {
    memory::segment_allocator* segment = nullptr;
    std::byte* base = nullptr;
    std::size_t granules = 0;
  };
  enum class contents : std::uint8_t {
    zero,  ///< the pages read as zero
    old    ///< the pages may hold bytes of freed allocations
  };
  struct taken {
    std::byte* base;
    contents pages;
  };

  /// limit: the most bytes kept.
  kept_memory(memory::uvas& space, device::device_set& devices, std::uint64_t limit)
      : space_(space), devices_(devices), limit_(limit) {}

  /// Keeps space that nothing uses any more, without its view. If there is too much, drops the space with the lowest
  /// addresses.
  void keep(const space& what, contents pages) noexcept;
  /// Takes space of this size, which then belongs to the caller, without a view: the beginning of the smallest kept
  /// space that is large enough, or else the largest kept space together with free address space behind it, whose
  /// pages are made at their first use. Empty if there is neither.
  [[nodiscard]] std::optional<taken> take(memory::segment_allocator& segment, std::size_t granules);
  /// Gives space and its pages back to the system. Addresses that the system does not release are not handed out again.
  void drop(const space& what) noexcept;
  /// Drops all space.
  void clear() noexcept;

 private:
  using spaces = interval_map<std::byte*, contents>;

  [[nodiscard]] bool put(const space& what, contents pages) noexcept;
  /// Removes space from the lowest address on while there is more than `bytes`; empty if there is not.
  [[nodiscard]] std::optional<space> take_above(std::uint64_t bytes) noexcept;

  memory::uvas& space_;
  device::device_set& devices_;
  const std::uint64_t limit_;
  mutex mutex_;
  std::map<memory::segment_allocator*, spaces> kept_ HPE_GUARDED_BY(mutex_);
  std::uint64_t bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::core
