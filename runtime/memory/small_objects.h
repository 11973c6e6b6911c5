#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::memory {

/// Small allocations of one home, side by side in slabs of one granule. The slabs are regions that the caller makes;
/// their memory is never touched here, everything known about it is kept apart. Every function may be called from any
/// thread, none from a signal handler.
///
/// Objects are aligned to 256 bytes. An object takes its size rounded up to a size class: to 256 bytes up to 1 KiB,
/// above that to a quarter of a power of two, so that less than a fifth of the space is lost.
class small_objects {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t largest = std::size_t{256} << 10;

  struct object {
    std::byte* base = nullptr;
    std::size_t size = 0;  ///< as asked for

    friend bool operator==(const object&, const object&) = default;
  };

  /// Memory for 1 to `largest` bytes; nullptr when no slab has room, in which case the caller adds one and asks again,
  /// in a loop, because another thread may be faster.
  [[nodiscard]] std::byte* allocate(std::size_t size);

  /// Makes one granule of memory available.
  void add_slab(std::byte* base);

  /// Frees an object that find() gave. Returns the slab if no object is left in it, which the caller may then remove,
  /// else nullptr. Throws HPE_ERROR_NOT_A_REGION, and nothing else, if the object is not live any more.
  std::byte* free(const object& what);
  /// Whether it is a live object, and the only one in its slab.
  [[nodiscard]] bool alone(const object& what) const;

  /// Forgets a slab; the memory is the caller's again. False if it is in use (again), or none.
  [[nodiscard]] bool remove_slab(std::byte* base) noexcept;

  /// The live object that contains the byte at pointer.
  [[nodiscard]] std::optional<object> find(const void* pointer) const;

  /// The last live object that starts at or before pointer, in the slab of that byte or in the one that ends less than
  /// a granule before it.
  [[nodiscard]] std::optional<object> find_before(const void* pointer) const;

 private:
  struct slab {
    std::size_t size_class = 0;             // of all its objects; nothing while it is empty
    std::vector<std::uint32_t> sizes;       // as asked for, by slot; 0: free
    std::vector<std::uint16_t> free_slots;  // the next one to use is the last
  };
  [[nodiscard]] std::optional<object> last_before(const std::byte* p) const HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  std::map<std::byte*, slab, std::less<>> slabs_ HPE_GUARDED_BY(mutex_);  // by start
  std::map<std::size_t, std::set<std::byte*>> with_room_
      HPE_GUARDED_BY(mutex_);  // size class -> slabs in use that have a free slot
  std::set<std::byte*> full_ HPE_GUARDED_BY(mutex_);
  std::set<std::byte*> empty_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::memory
