#pragma once

/// A table of the address ranges that are backed by memory, with the device that backs each range. The owner uses the
/// table to check commands; a device process uses it to find its mapping of registered host memory.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::device::soft {

inline constexpr int host_location = -1;
inline constexpr int foreign_location = -2;  // memory of a device that another process uses

struct location {
  int device = host_location;
  std::ptrdiff_t shift = 0;  // address of a byte in this process minus its address in the program
  bool zero_copy = false;    // the bytes count as host memory (device::backing_kind::zero_copy)

  friend bool operator==(const location&, const location&) = default;
};

/// A set of disjoint address ranges, each with a location. Thread-safe.
class address_table {
 public:
  struct backed_range {
    location where;
    std::uintptr_t end = 0;  // the end of the inserted range that contains the address
  };

  /// Throws HPE_ERROR_INVALID_ARGUMENT if a part of the range is in the table already.
  void insert(std::uintptr_t begin, std::size_t bytes, location where);

  /// Removes a range, which may be a part of an inserted range, or may contain several inserted ranges. Returns how
  /// many of its bytes were not zero-copy memory. Throws HPE_ERROR_INVALID_ARGUMENT and removes nothing if a part of
  /// the range is not in the table or not backed by `device`. The removal of whole inserted ranges allocates no memory.
  std::size_t erase(std::uintptr_t begin, std::size_t bytes, int device);

  /// Sets whether a range, which was inserted as a whole, is zero-copy memory. Throws HPE_ERROR_INVALID_ARGUMENT, and
  /// changes nothing, if no such range is backed by `device`.
  void set_zero_copy(std::uintptr_t begin, std::size_t bytes, int device, bool zero_copy);

  [[nodiscard]] std::optional<backed_range> find(std::uintptr_t address) const;

 private:
  mutable shared_mutex mutex_;
  interval_map<std::uintptr_t, location> ranges_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
