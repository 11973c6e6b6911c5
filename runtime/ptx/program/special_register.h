#pragma once

/// The special registers, from which a thread reads its indices and its environment (special_register.def).

#include <optional>
#include <string_view>

#include "runtime/ptx/program/type.h"

namespace hpe::ptx {

enum class special_register : std::uint8_t {
#define PTX_SPECIAL(identifier, spelling, type) identifier,
#include "runtime/ptx/program/special_register.def"
#undef PTX_SPECIAL
  count
};

[[nodiscard]] std::optional<special_register> special_register_of_name(std::string_view name);
[[nodiscard]] type type_of(special_register r);

}  // namespace hpe::ptx
