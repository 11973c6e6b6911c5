#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

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

  /// Frees an object by the address that allocate gave. Returns the slab if no object is left in it, which the caller
  /// may then remove, else nullptr. Throws HPE_ERROR_NOT_A_REGION for any other address.
  std::byte* free(const void* pointer);

  /// Forgets a slab; the memory is the caller's again. False if it is in use (again), or none.
  [[nodiscard]] bool remove_slab(std::byte* base);

  /// The live object that contains the byte at pointer.
  [[nodiscard]] std::optional<object> find(const void* pointer) const;

 private:
  struct slab {
    std::size_t size_class = 0;             // of all its objects; nothing while it is empty
    std::vector<std::uint32_t> sizes;       // as asked for, by slot; 0: free
    std::vector<std::uint16_t> free_slots;  // the next one to use is the last
  };
  struct place {
    std::byte* slab;
    std::size_t slot;
  };
  [[nodiscard]] std::optional<place> place_of(const std::byte* p) const;

  mutable std::mutex mutex_;
  std::map<std::byte*, slab, std::less<>> slabs_;          // by start
  std::map<std::size_t, std::set<std::byte*>> with_room_;  // size class -> slabs in use that have a free slot
  std::set<std::byte*> empty_;
};

}  // namespace hpe::memory
