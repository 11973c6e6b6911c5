#pragma once

/// The meanings of names at a position in a PTX text.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// The meaning of a name. `index` is the number of a register, symbol or function; `offset` is into formals, scratch or
/// local memory.
struct entity {
  operand::kind what = operand::kind::none;
  std::uint32_t index = 0;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// Nested scopes. The names are views into the PTX text.
class scope {
 public:
  scope() { open(); }
  void open() { levels_.emplace_back(); }
  void close() { levels_.pop_back(); }
  void declare(std::string_view name, const entity& what) { levels_.back().names[name] = what; }
  /// `.reg .b32 %r<5>` declares %r0 to %r4.
  void declare_family(std::string_view prefix, std::uint32_t first, std::uint32_t count);
  [[nodiscard]] std::optional<entity> find(std::string_view name) const;

 private:
  struct family {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct level {
    std::unordered_map<std::string_view, entity> names;
    std::unordered_map<std::string_view, family> families;
  };
  std::vector<level> levels_;
};

}  // namespace hpe::ptx
