#include "runtime/ptx/program/scope.h"

#include <charconv>

namespace hpe::ptx {

scope::level scope::close() {
  level inner = std::move(levels_.back());
  levels_.pop_back();
  return inner;
}

void scope::declare_family(std::string_view prefix, std::uint32_t count,
                           std::function<std::uint32_t(std::string_view name)> make) {
  levels_.back().families_[prefix] = {count, std::move(make), {}};
}

std::optional<entity> scope::find(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const std::string_view written = name.substr(digits);
  std::uint32_t number = 0;
  const bool numbered = digits > 0 && !written.empty() && (written == "0" || written[0] != '0') &&
                        std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc();
  const std::string_view prefix = name.substr(0, digits);
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    // Most names are numbered registers. A lookup of the register's family ("%r" of "%r4") is faster than a lookup
    // among all names.
    if (const auto found = numbered ? level->families_.find(prefix) : level->families_.end();
        found != level->families_.end() && number < found->second.count) {
      const auto [place, is_new] = found->second.made.try_emplace(number);
      if (is_new) place->second = {operand::kind::reg, found->second.make(name), 0, 0};
      return place->second;
    }
    if (const auto found = level->names_.find(name); found != level->names_.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace hpe::ptx
