#include "runtime/ptx/program/modifier.h"

#include <array>
#include <unordered_map>

namespace hpe::ptx {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(modifier::count)> names{
#define PTX_MODIFIER(identifier, spelling) spelling,
#include "runtime/ptx/program/modifier.def"
#undef PTX_MODIFIER
};

std::unordered_map<std::string_view, modifier> modifiers_by_name() {
  std::unordered_map<std::string_view, modifier> index;
  for (std::size_t i = 0; i < names.size(); ++i) index.emplace(names[i], static_cast<modifier>(i));
  return index;
}

}  // namespace

std::optional<modifier> modifier_of_name(std::string_view name) {
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& index = *new const std::unordered_map<std::string_view, modifier>(modifiers_by_name());
  if (const auto found = index.find(name); found != index.end()) return found->second;
  if (name.starts_with("L1::")) return modifier::L1;
  if (name.starts_with("L2::")) return modifier::L2;
  return std::nullopt;
}

std::string_view name_of(modifier m) { return names[static_cast<std::size_t>(m)]; }

}  // namespace hpe::ptx
