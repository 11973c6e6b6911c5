#pragma once

/// Which addresses are backed, and by whom. The owner checks commands with it; a device finds its own view of
/// registered host memory with it.

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
  std::ptrdiff_t shift = 0;  // from the program's address to where this process sees the byte

  friend bool operator==(const location&, const location&) = default;
};

/// Disjoint ranges of addresses. Any thread may use it at any time.
class address_table {
 public:
  struct piece {
    location where;
    std::uintptr_t end = 0;  // first address that is backed otherwise or not at all
  };

  /// Throws HPE_ERROR_INVALID_ARGUMENT when a part of the range is there already.
  void insert(std::uintptr_t begin, std::size_t bytes, location where);

  /// Removes a range, which may be a part of what was inserted, or several neighbours. Throws
  /// HPE_ERROR_INVALID_ARGUMENT, with nothing removed, unless all of it is there and backed by `device`. Ranges as they
  /// were inserted are removed without taking memory.
  void erase(std::uintptr_t begin, std::size_t bytes, int device);

  [[nodiscard]] std::optional<piece> find(std::uintptr_t address) const;

 private:
  mutable shared_mutex mutex_;
  interval_map<std::uintptr_t, location> ranges_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
