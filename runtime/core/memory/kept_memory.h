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

/// Keeps the address space and the host pages of freed allocations for new allocations of any size. The pages stay
/// pinned for copies. Creating and pinning new pages takes several times as long as filling them over the link of a
/// GPU. Thread-safe.
class kept_memory {
 public:
  /// A range of a segment's address space that the caller owns.
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

  /// limit: the largest number of bytes that are kept.
  kept_memory(memory::uvas& space, device::device_set& devices, std::uint64_t limit)
      : space_(space), devices_(devices), limit_(limit) {}

  /// Unmaps the view of an unused range and keeps the range. If that fails, or if the range is larger than the limit,
  /// drops the range. While more bytes than the limit are kept, drops kept granules.
  void keep(const space& what, contents pages) noexcept;
  /// Removes a range of `granules` granules from the kept memory and returns it. The range has no view. It is the
  /// beginning of the smallest kept range that is large enough. If no kept range is large enough, the result is the
  /// largest kept range together with the free address space after it; the pages of that address space are created at
  /// their first use. Returns nullopt if no range is kept, or if the largest kept range is too small and the address
  /// space after it is not free.
  [[nodiscard]] std::optional<taken> take(memory::segment_allocator& segment, std::size_t granules);
  /// Returns a range and its pages to the system. If the system does not release the addresses, they are not reused.
  void drop(const space& what) noexcept;
  /// Drops all kept ranges.
  void clear() noexcept;

 private:
  using spaces = interval_map<std::byte*, contents>;

  [[nodiscard]] bool put(const space& what, contents pages) noexcept;
  /// If more than `bytes` bytes are kept, removes one kept range, or the part of it that is too much, and returns the
  /// removed range. Otherwise returns nullopt.
  [[nodiscard]] std::optional<space> take_above(std::uint64_t bytes) noexcept;

  memory::uvas& space_;
  device::device_set& devices_;
  const std::uint64_t limit_;
  mutex mutex_;
  std::map<memory::segment_allocator*, spaces> kept_ HPE_GUARDED_BY(mutex_);
  std::uint64_t bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::core
