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

/// Allocates small objects of one home side by side in slabs of one granule. The caller makes the slabs, which are
/// regions. This class never touches their memory; its records are elsewhere. Thread-safe, but not safe in signal
/// handlers.
///
/// Objects are aligned to 256 bytes. An object takes its size rounded up to a size class: to 256 bytes up to 1 KiB,
/// above that to a quarter of a power of two, so that less than a fifth of the space is lost.
class small_objects {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t largest = std::size_t{256} << 10;

  struct object {
    std::byte* base = nullptr;
    std::size_t size = 0;  ///< the requested size

    friend bool operator==(const object&, const object&) = default;
  };

  /// Allocates 1 to `largest` bytes. Returns nullptr if no slab has room: the caller then adds a slab and asks again,
  /// in a loop, because another thread may use up the new slab first.
  [[nodiscard]] std::byte* allocate(std::size_t size);

  /// Adds a slab: one granule of memory.
  void add_slab(std::byte* base);

  /// Frees an object that find() gave. Returns its slab if the slab is empty now, which the caller may then remove,
  /// else nullptr. Throws HPE_ERROR_NOT_A_REGION, and nothing else, if the object is not live any more.
  std::byte* free(const object& what);
  /// Whether the object is live, and the only one in its slab.
  [[nodiscard]] bool alone(const object& what) const;

  /// Removes a slab, whose memory belongs to the caller again. False if it is in use (again), or unknown.
  [[nodiscard]] bool remove_slab(std::byte* base) noexcept;

  /// The live object that contains the byte at pointer.
  [[nodiscard]] std::optional<object> find(const void* pointer) const;

  /// The last live object that starts at or before pointer, in the slab of that byte or in the one that ends less than
  /// a granule before it.
  [[nodiscard]] std::optional<object> find_before(const void* pointer) const;

 private:
  struct slab {
    std::size_t size_class = 0;             // of all its objects; 0 while it is empty
    std::vector<std::uint32_t> sizes;       // requested sizes, by slot; 0: free
    std::vector<std::uint16_t> free_slots;  // the last one is used next
  };
  [[nodiscard]] std::optional<object> last_before(const std::byte* p) const HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  std::map<std::byte*, slab, std::less<>> slabs_ HPE_GUARDED_BY(mutex_);  // by start address
  std::map<std::size_t, std::set<std::byte*>> with_room_
      HPE_GUARDED_BY(mutex_);  // size class -> slabs in use that have a free slot
  std::set<std::byte*> full_ HPE_GUARDED_BY(mutex_);
  std::set<std::byte*> empty_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::memory
