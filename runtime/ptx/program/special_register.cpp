#include "runtime/ptx/program/special_register.h"

#include <unordered_map>

namespace hpe::ptx {

std::optional<special_register> special_register_of_name(std::string_view name) {
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& index = *new const std::unordered_map<std::string_view, special_register>{
#define PTX_SPECIAL(identifier, spelling, type) {spelling, special_register::identifier},
#include "runtime/ptx/program/special_register.def"
#undef PTX_SPECIAL
  };
  const auto found = index.find(name);
  if (found == index.end()) return std::nullopt;
  return found->second;
}

type type_of(special_register r) {
  static constexpr type types[] = {
#define PTX_SPECIAL(identifier, spelling, type_) type::type_,
#include "runtime/ptx/program/special_register.def"
#undef PTX_SPECIAL
  };
  return types[static_cast<std::size_t>(r)];
}

}  // namespace hpe::ptx
