#include "runtime/ptx/program/written_variables.h"

#include <algorithm>
#include <utility>

namespace hpe::ptx {

namespace {

constexpr std::uint32_t no_symbol = ~0U;

/// Follows the addresses of variables through the registers of one function. The analysis ignores the order of
/// instructions.
class addresses_in {
 public:
  addresses_in(const function& f, std::vector<symbol>& symbols)
      : function_(f), symbols_(symbols), in_(f.registers.size(), no_symbol) {}

  void run() {
    do {
      changed_ = false;
      for (const instruction& i : function_.code) look(i);
    } while (changed_);
  }

 private:
  [[nodiscard]] std::uint32_t symbol_in(const operand& o) const {
    if (o.what == operand::kind::symbol) return o.index;
    return o.is_register() ? in_[o.index] : no_symbol;
  }

  void escapes(std::uint32_t symbol) {
    if (symbol != no_symbol) symbols_[symbol].may_be_written = true;
  }

  void look(const instruction& i) {
    escapes(symbol_in(i.guard));
    for (std::size_t n = 0; n < i.sources.size(); ++n) {
      const std::uint32_t symbol = symbol_in(i.sources[n]);
      if (symbol == no_symbol) continue;
      const bool is_loaded_from = (i.kind == kind::load && n == 0) || (i.kind == kind::copy_async && n == 1);
      if (is_loaded_from) continue;
      if (i.op == opcode::setp && symbol_in(i.sources[1 - n % 2]) == symbol) continue;
      const bool makes_address = i.kind == kind::pure || (i.kind == kind::address_space && i.op == opcode::cvta);
      if (!makes_address || i.op == opcode::setp || i.results.empty()) {
        escapes(symbol);
      } else {
        for (const operand& o : i.results)
          if (o.is_register()) put(symbol, o.index);
      }
    }
  }

  // If a register may contain addresses of two variables, both variables may be written.
  void put(std::uint32_t symbol, std::uint32_t into) {
    const std::uint32_t before = std::exchange(in_[into], symbol);
    changed_ |= before != symbol && before == no_symbol;
    if (before == no_symbol || before == symbol) return;
    in_[into] = before;
    escapes(symbol);
    escapes(before);
  }

  const function& function_;
  std::vector<symbol>& symbols_;
  std::vector<std::uint32_t> in_;  // by register: the variable whose address the register contains
  bool changed_ = false;
};

}  // namespace

void find_written_variables(program& p) {
  if (std::none_of(p.symbols.begin(), p.symbols.end(), [](const symbol& s) { return s.is_only_read(); })) return;
  for (const symbol& s : p.symbols)
    for (const symbol::relocation& r : s.relocations)
      if (!r.is_function) p.symbols[r.target].may_be_written = true;
  for (const auto& f : p.functions) addresses_in(*f, p.symbols).run();
}

}  // namespace hpe::ptx
