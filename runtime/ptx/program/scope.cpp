#include "runtime/ptx/program/scope.h"

#include <charconv>

namespace hpe::ptx {

void scope::declare_family(std::string_view prefix, std::uint32_t first, std::uint32_t count) {
  levels_.back().families[prefix] = {first, count};
}

std::optional<entity> scope::find(std::string_view name) const {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::uint32_t number = 0;
  const bool numbered = digits > 0 && digits < name.size() &&
                        std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc();
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    if (const auto found = level->names.find(name); found != level->names.end()) return found->second;
    if (!numbered) continue;
    if (const auto found = level->families.find(name.substr(0, digits));
        found != level->families.end() && number < found->second.count)
      return entity{operand::kind::reg, found->second.first + number, 0, 0};
  }
  return std::nullopt;
}

}  // namespace hpe::ptx
