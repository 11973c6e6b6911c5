#pragma once

/// Assigns a number, the ID, to each layout of an array. array_placement.h decides which layout an array has.

#include <string>
#include <unordered_map>

#include "runtime/spread/model/launch.h"

namespace hpe::spread {

/// Allocations with the same size, granule, homes and flags have the same ID, even if their addresses differ. Only one
/// thread at a time may use an object.
class layout_ids {
 public:
  using id = std::uint32_t;

  /// Returns the ID of an allocation's layout; 0 for null. Computes the ID again only if the allocation's
  /// version has changed.
  [[nodiscard]] id of(const kernel_array* a) {
    if (a == nullptr) return 0;
    const auto [found, is_new] = known_.try_emplace(a->address);
    if (is_new || found->second.version != a->version) found->second = {a->version, of_homes(*a)};
    return found->second.layout;
  }
  /// Returns the ID of the layout of a planned allocation. Ignores the address and the version.
  [[nodiscard]] id of_homes(const kernel_array& a) {
    return ids_.try_emplace(content_of(a), static_cast<id>(ids_.size()) + 1).first->second;
  }
  /// Call this when the allocation is freed.
  void forget(std::uint64_t address) { known_.erase(address); }
  /// Returns whether the object has more IDs than it should store. The caller then replaces the object by a new one.
  [[nodiscard]] bool is_full() const { return ids_.size() > most; }

 private:
  static constexpr std::size_t most = 1U << 16U;
  struct known {
    std::uint64_t version = 0;
    id layout = 0;
  };
  [[nodiscard]] static std::string content_of(const kernel_array& a) {
    std::string content;
    append(content, a.bytes);
    append(content, a.granule);
    append(content, static_cast<char>((a.may_replicate ? 1 : 0) + (a.is_replicated ? 2 : 0) + (a.is_empty ? 4 : 0)));
    for (const home_run& run : a.homes) {
      append(content, run.last);
      append(content, run.home);
    }
    return content;
  }
  std::unordered_map<std::string, id> ids_;         // by the content of the layout
  std::unordered_map<std::uint64_t, known> known_;  // by address
};

}  // namespace hpe::spread
