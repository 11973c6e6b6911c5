#pragma once

/// Numbers that identify the layouts of arrays on devices.

#include <string>
#include <unordered_map>

#include "runtime/spread/launch.h"

namespace hpe::spread {

/// Gives each layout a number. Allocations with the same size, granule, homes and flags get the same number, whatever
/// their addresses. For one thread at a time.
class layout_table {
 public:
  using number = std::uint32_t;

  /// Returns the number for the layout of an allocation; 0 for null. Computes it again only if the allocation's version
  /// has changed.
  [[nodiscard]] number of(const allocation* a);
  /// Returns the number for the layout of an allocation that does not exist yet. Its address and version are ignored.
  [[nodiscard]] number of_homes(const allocation& a);
  /// Call this when the allocation is freed.
  void forget(std::uint64_t address) { known_.erase(address); }
  [[nodiscard]] bool is_full() const { return numbers_.size() > most; }

 private:
  static constexpr std::size_t most = 1U << 16U;
  struct known {
    std::uint64_t version = 0;
    number layout = 0;
  };
  std::unordered_map<std::string, number> numbers_;  // by content
  std::unordered_map<std::uint64_t, known> known_;   // by address
};

}  // namespace hpe::spread
