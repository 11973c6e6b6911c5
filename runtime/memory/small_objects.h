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

/// Allocates small objects with the same home next to each other in slabs of one granule. The caller creates the slabs,
/// which are regions. This class never touches the memory of slabs, because its records are in other memory.
/// Thread-safe, but not safe in signal handlers.
///
/// Objects are aligned to 256 bytes. The space of an object is its size, rounded up. Sizes up to 1 KiB are rounded up
/// to a multiple of 256 bytes. Larger sizes are rounded up to a multiple of a quarter of the greatest power of two
/// below the size, which wastes less than a fifth of the space.
class small_objects {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t largest = std::size_t{256} << 10;

  struct object {
    std::byte* base = nullptr;
    std::size_t size = 0;  ///< the requested size

    friend bool operator==(const object&, const object&) = default;
  };

  /// Allocates 1 to `largest` bytes. Returns nullptr if no slab has a free slot of the object's size class. The caller
  /// must then add a slab and call allocate again, in a loop, because another thread may use up the new slab first.
  [[nodiscard]] std::byte* allocate(std::size_t size);

  /// Adds a slab: one granule of memory.
  void add_slab(std::byte* base);

  /// Retires an object that find() returned: the object is no longer live, but its space stays occupied until it is
  /// freed. Throws HPE_ERROR_NOT_A_REGION if the object is not live; throws nothing else.
  void retire(const object& what) { set_retired(what, true); }
  /// Makes a retired object live again.
  void revive(const object& what) { set_retired(what, false); }
  /// Frees an object, live or retired. If the object's slab is then empty, returns the slab, which the caller may
  /// remove; otherwise returns nullptr. Throws HPE_ERROR_NOT_A_REGION if the object no longer exists; throws nothing
  /// else.
  std::byte* free(const object& what);
  /// Whether the object, live or retired, is the only one in its slab.
  [[nodiscard]] bool alone(const object& what) const;

  /// Removes a slab, whose memory then belongs to the caller. Returns false if the slab is in use (again) or unknown.
  [[nodiscard]] bool remove_slab(std::byte* base) noexcept;

  /// Returns the live object that contains the byte at `pointer`.
  [[nodiscard]] std::optional<object> find(const void* pointer) const;

  /// Returns the last live object that starts at or before `pointer`, in the slab that contains `pointer` or in a slab
  /// that ends less than a granule before `pointer`.
  [[nodiscard]] std::optional<object> find_before(const void* pointer) const;

 private:
  struct slab {
    std::size_t size_class = 0;             // size class of all objects of the slab; 0 while the slab is empty
    std::vector<std::uint32_t> sizes;       // requested sizes, by slot, with a bit for retired objects; 0: slot free
    std::vector<std::uint16_t> free_slots;  // the last entry is used next
  };
  using slabs = std::map<std::byte*, slab, std::less<>>;
  void set_retired(const object& what, bool retired);
  [[nodiscard]] std::optional<object> last_before(const std::byte* p) const HPE_REQUIRES(mutex_);
  /// Returns the slab of an object whose entry in sizes is `size`; end() if the object does not exist.
  [[nodiscard]] slabs::iterator slab_of(const object& what, std::uint32_t size) HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  slabs slabs_ HPE_GUARDED_BY(mutex_);  // by start address
  std::map<std::size_t, std::set<std::byte*>> with_room_
      HPE_GUARDED_BY(mutex_);  // size class -> slabs in use that have a free slot
  std::set<std::byte*> full_ HPE_GUARDED_BY(mutex_);
  std::set<std::byte*> empty_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::memory
