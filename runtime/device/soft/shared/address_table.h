#pragma once

/// A table of the addresses that are backed by memory, and of the device that backs each of them. The owner uses the
/// table to check commands; a device uses it to find its own mapping of registered host memory.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::device::soft {

inline constexpr int host_location = -1;
inline constexpr int foreign_location = -2;  // a device of another process

struct location {
  int device = host_location;
  std::ptrdiff_t shift = 0;  // address of a byte in this process minus its address in the program

  friend bool operator==(const location&, const location&) = default;
};

/// Disjoint ranges of addresses. Thread-safe.
class address_table {
 public:
  struct piece {
    location where;
    std::uintptr_t end = 0;  // the first address that is not backed in the same way
  };

  /// Throws HPE_ERROR_INVALID_ARGUMENT if a part of the range is in the table already.
  void insert(std::uintptr_t begin, std::size_t bytes, location where);

  /// Removes a range, which may be a part of an inserted range, or several neighbours. Throws
  /// HPE_ERROR_INVALID_ARGUMENT, and removes nothing, unless the whole range is in the table and backed by `device`.
  /// Removing ranges as they were inserted allocates no memory.
  void erase(std::uintptr_t begin, std::size_t bytes, int device);

  [[nodiscard]] std::optional<piece> find(std::uintptr_t address) const;

 private:
  mutable shared_mutex mutex_;
  interval_map<std::uintptr_t, location> ranges_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
