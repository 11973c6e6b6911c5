#pragma once

/// The parts of an instruction's name other than opcode and types: rounding, comparison, state space, ...
/// (modifier.def).

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

/// The modifiers of an instruction, without their order, which has no meaning in PTX. Only the order of types has a
/// meaning; types are stored separately and in order.
class modifier_set {
 public:
  [[nodiscard]] bool has(modifier m) const { return bits_[static_cast<std::size_t>(m)]; }
  void add(modifier m) { bits_.set(static_cast<std::size_t>(m)); }
  /// Returns which of the given modifiers is in the set; `count` if none of them is.
  template <class... Modifiers>
  [[nodiscard]] modifier one_of(Modifiers... wanted) const {
    modifier found = modifier::count;
    ((has(wanted) ? void(found = wanted) : void()), ...);
    return found;
  }

 private:
  std::bitset<static_cast<std::size_t>(modifier::count)> bits_;
};

/// Finds a modifier by its name without the dot. All cache hints with arguments ("L2::128B", "L1::evict_last") become
/// L1 or L2.
[[nodiscard]] std::optional<modifier> modifier_of_name(std::string_view name);
[[nodiscard]] std::string_view name_of(modifier m);

}  // namespace hpe::ptx
