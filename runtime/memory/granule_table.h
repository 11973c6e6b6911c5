#pragma once

/// A table of the region and the home of each address. It has one entry for each granule of the UVAS.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/granule.h"
#include "runtime/base/uvas_layout.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::memory {

/// The home of granules that host memory backs; all other homes are device numbers.
inline constexpr std::uint16_t host_home = 0xffff;

struct granule_entry {
  std::uint32_t region = 0;  ///< number of the region; 0: no region, and `home` has no meaning
  std::uint16_t home = 0;

  friend bool operator==(const granule_entry&, const granule_entry&) = default;
};

/// find() may be called at any time, in any thread and in signal handlers. find() reads each entry as a whole: either
/// the old or the new entry. A change of an entry synchronises with a find() that returns that entry. Callers must
/// order changes of one granule; changes of different granules may happen at the same time. Ranges must start at
/// multiples of the granule inside the UVAS.
class granule_table {
 public:
  explicit granule_table(const uvas_layout& layout);

  /// Returns the entry of p's granule; an empty entry for an address outside the UVAS.
  [[nodiscard]] granule_entry find(const void* p) const noexcept {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(p) - base_;
    if (offset >= size_) return {};
    return entries_[offset / granule_size].load(std::memory_order_acquire);
  }

  void assign(const void* first, std::size_t granules, granule_entry entry) noexcept;
  /// Changes only the home.
  void set_home(const void* first, std::size_t granules, std::uint16_t home) noexcept;
  void clear(const void* first, std::size_t granules) noexcept { assign(first, granules, {}); }

 private:
  using slot = std::atomic<granule_entry>;
  static_assert(slot::is_always_lock_free && sizeof(slot) == 8);

  [[nodiscard]] slot* slot_of(const void* p) const noexcept {
    return entries_ + (reinterpret_cast<std::uintptr_t>(p) - base_) / granule_size;
  }

  std::uintptr_t base_;
  std::size_t size_;
  os::reservation memory_;
  slot* entries_;
};

/// Returns the homes of the granules of a striped region, in order. If `distribution` is nullptr, the region has a
/// block distribution over all devices. The parts of a block distribution differ by one granule at most, and the longer
/// parts come first. The size of a chunk is rounded up to whole granules. Throws HPE_ERROR_INVALID_DEVICE for a device
/// that does not exist, and HPE_ERROR_INVALID_ARGUMENT for other invalid values.
[[nodiscard]] std::vector<std::uint16_t> distribute(const hpeDistribution* distribution, std::size_t granules,
                                                    unsigned device_count);

}  // namespace hpe::memory
