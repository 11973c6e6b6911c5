#pragma once

/// Modifiers: the parts of an instruction's name other than opcode and types, such as rounding, comparison and state
/// space (modifier.def).

#include <bitset>
#include <optional>
#include <string_view>

namespace hpe::ptx {

enum class modifier : unsigned {
#define PTX_MODIFIER(identifier, spelling) identifier,
#include "runtime/ptx/program/modifier.def"
#undef PTX_MODIFIER
  count
};

/// The modifiers of an instruction. The set does not store their order, because the order has no meaning in PTX.
class modifier_set {
 public:
  [[nodiscard]] bool has(modifier m) const { return bits_[static_cast<std::size_t>(m)]; }
  void add(modifier m) { bits_.set(static_cast<std::size_t>(m)); }
  /// Returns which of the given modifiers is in the set; modifier::count if none of them is in the set.
  template <class... Modifiers>
  [[nodiscard]] modifier one_of(Modifiers... wanted) const {
    modifier found = modifier::count;
    ((has(wanted) ? void(found = wanted) : void()), ...);
    return found;
  }

 private:
  std::bitset<static_cast<std::size_t>(modifier::count)> bits_;
};

/// Returns the modifier with a name, given without the dot; empty if there is none. Returns L1 or L2 for cache hints
/// with arguments ("L1::evict_last", "L2::128B").
[[nodiscard]] std::optional<modifier> modifier_of_name(std::string_view name);
[[nodiscard]] std::string_view name_of(modifier m);

}  // namespace hpe::ptx
