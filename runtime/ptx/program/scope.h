#pragma once

/// The names that are declared at a position in a PTX text, and the register, variable or function of each name.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// The register, variable, function or memory to which a name refers. `index` is the number of a register, symbol or
/// function. `offset` is an offset into formals, scratch or local memory (see operand::kind in ptx_program.h).
struct entity {
  operand::kind what = operand::kind::none;
  std::uint32_t index = 0;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// Nested scopes. The names are views into the PTX text.
class scope {
 public:
  /// The names that one scope declares.
  class level {
    friend class scope;
    struct family {
      std::uint32_t count = 0;
      std::function<std::uint32_t(std::string_view name)> make;
      std::unordered_map<std::uint32_t, entity> made;  // by the number in the register's name
    };
    std::unordered_map<std::string_view, entity> names_;
    std::unordered_map<std::string_view, family> families_;
  };

  scope() { open(); }
  [[nodiscard]] std::size_t depth() const { return levels_.size(); }
  void open(level inner = {}) { levels_.push_back(std::move(inner)); }
  /// Closes the innermost scope and returns its names. open() with these names opens the same scope again.
  level close();
  void declare(std::string_view name, const entity& what) { levels_.back().names_[name] = what; }
  /// `.reg .b32 %r<5>` declares %r0 to %r4. A text can declare far more registers than it uses, so `make` gives a
  /// register its number only when find() first looks up its name.
  void declare_family(std::string_view prefix, std::uint32_t count,
                      std::function<std::uint32_t(std::string_view name)> make);
  [[nodiscard]] std::optional<entity> find(std::string_view name);

 private:
  std::vector<level> levels_;
};

}  // namespace hpe::ptx
