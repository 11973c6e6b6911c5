#pragma once

/// Numbers that identify the layouts of arrays on devices.

#include <string>
#include <unordered_map>

#include "runtime/spread/launch.h"

namespace hpe::spread {

/// Assigns a number to each layout. Allocations with the same size, granule, homes and flags have the same number, even
/// if their addresses differ. Only one thread at a time may use an object.
class layout_table {
 public:
  using number = std::uint32_t;

  /// Returns the number of an allocation's layout; 0 for null. Computes the number again only if the allocation's
  /// version has changed.
  [[nodiscard]] number of(const kernel_array* a) {
    if (a == nullptr) return 0;
    const auto [found, is_new] = known_.try_emplace(a->address);
    if (is_new || found->second.version != a->version) found->second = {a->version, of_homes(*a)};
    return found->second.layout;
  }
  /// Returns the number of the layout of a planned allocation. Ignores the address and the version.
  [[nodiscard]] number of_homes(const kernel_array& a) {
    return numbers_.try_emplace(content_of(a), static_cast<number>(numbers_.size()) + 1).first->second;
  }
  /// Call this when the allocation is freed.
  void forget(std::uint64_t address) { known_.erase(address); }
  /// Returns whether the table has more layouts than it should store. The caller then replaces the table by a new one.
  [[nodiscard]] bool is_full() const { return numbers_.size() > most; }

 private:
  static constexpr std::size_t most = 1U << 16U;
  struct known {
    std::uint64_t version = 0;
    number layout = 0;
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
  std::unordered_map<std::string, number> numbers_;  // by the content of the layout
  std::unordered_map<std::uint64_t, known> known_;   // by address
};

}  // namespace hpe::spread
