#pragma once

/// Fills this process's page tables ahead of large writes, once for each part of its memory: filling them in one call
/// costs half of what the page faults cost, and asking for what is filled already costs more than a look-up here.

#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <unordered_set>

namespace hpe::device::soft {

class softd_pages {
 public:
  /// What follows writes [address, address + bytes) of mapped memory. Any thread.
  void prepare(void* address, std::size_t bytes);

  /// The range is mapped anew, or no more.
  void forget(const void* address, std::size_t bytes);

 private:
  static constexpr std::size_t unit = std::size_t{64} << 10;

  [[nodiscard]] bool filled(std::uintptr_t number) const;

  mutable std::shared_mutex mutex_;
  std::unordered_set<std::uintptr_t> filled_;  // numbers of units that were wholly written
};

}  // namespace hpe::device::soft
