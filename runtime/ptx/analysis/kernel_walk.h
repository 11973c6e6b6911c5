#pragma once

/// Follows the registers of a function through its control flow, and derives the expression (expression.h) of each
/// address and of each predicate that decides a branch.

#include "runtime/ptx/analysis/value_rules.h"

namespace hpe::ptx::analysis {

/// A predicate, and the value of the predicate whenever the code runs.
struct condition {
  expression_id predicate = 0;
  bool holds = true;
  assumption_set assumes = 0;
};

class kernel_walk {
 public:
  /// The function must outlive the object.
  explicit kernel_walk(const function& f);

  [[nodiscard]] const flow_graph& flow() const { return flow_; }
  [[nodiscard]] expressions& table() { return expressions_; }
  [[nodiscard]] assumption_table& assumptions() { return assumptions_; }
  /// Whether the walk covered the whole function. If the walk did not, no expression is known.
  [[nodiscard]] bool is_complete() const { return complete_; }

  /// Returns the address that source operand `n` of the instruction at `position` contains. The instruction must be in
  /// a reachable block.
  [[nodiscard]] value address_of(std::uint32_t position, std::size_t n);
  /// Returns the value of a source operand.
  [[nodiscard]] const value& source_of(std::uint32_t position, std::size_t n) const {
    return used_[position].sources[n];
  }
  /// Returns conditions that hold whenever the block runs: those of the nearest branches that decide whether a thread
  /// reaches the block, at most 32.
  [[nodiscard]] std::vector<condition> conditions_at(std::uint32_t block) const;
  /// Returns the condition of an instruction's guard; empty if the instruction has no guard.
  [[nodiscard]] std::optional<condition> guard_of(std::uint32_t position) const;
  /// Whether a thread can leave `loop` at the end of `block`: by a jump to a block outside of the loop, or by ending.
  [[nodiscard]] bool may_leave(std::uint32_t loop, std::uint32_t block) const;
  /// Returns the value that decides the branch at the end of a block; empty if the block does not end with a branch.
  [[nodiscard]] std::optional<value> decision_of(std::uint32_t block) const;
  struct decision {
    std::uint32_t block = 0;  // the block that ends with the branch
    value what;
  };
  /// Returns all decisions that determine how often threads repeat a loop: the branches that leave the loop, and the
  /// branches that decide which of these branches a thread reaches.
  [[nodiscard]] std::vector<decision> endings_of(std::uint32_t loop) const;
  /// Returns all decisions of a loop that determine whether an iteration reaches a block of the loop.
  [[nodiscard]] std::vector<decision> decisions_before(std::uint32_t loop, std::uint32_t block) const;

 private:
  using state = std::vector<value>;  // by slot: the values of the registers that several instructions write
  enum class progress : std::uint8_t { unknown, affine, recurrent };
  struct loop_register {
    bool is_changed = false;  // whether the loop writes the register
    progress how = progress::unknown;
    value initial;
    expression_id step = 0;
    assumption_set assumes = 0;
  };
  struct used_operands {
    std::vector<value> sources;
    value guard;
  };

  void give_up();
  void find_slots();
  void find_changes();
  bool walk();
  void settle(std::uint32_t depth);
  [[nodiscard]] bool verified();
  state enter(std::uint32_t block);
  value at_header(std::uint32_t loop, std::uint32_t slot, const value& initial);
  value merged(std::uint32_t block, std::uint32_t slot, const std::vector<std::uint32_t>& from,
               std::optional<std::vector<value>>& decisions);
  [[nodiscard]] std::vector<value> deciding(std::uint32_t block) const;
  [[nodiscard]] std::vector<decision> forks(std::uint32_t loop, const std::vector<bool>& goals) const;
  [[nodiscard]] std::vector<decision> latch_choices(std::uint32_t loop) const;
  void execute(std::uint32_t position, state& now, loop_set inside);
  void load(const instruction& i, std::uint32_t position, const std::vector<value>& sources, loop_set inside,
            std::vector<value>& results);
  void assign(const operand& to, std::uint32_t position, const value& v, const value& guard, state& now,
              loop_set inside);
  [[nodiscard]] value read(const operand& o, unsigned bits, const state& now, std::uint32_t position);

  static constexpr std::uint32_t none = ~0U;
  const function& function_;
  flow_graph flow_;
  expressions expressions_;
  assumption_table assumptions_;
  value_rules rules_;
  bool complete_ = true;
  std::vector<std::uint32_t>
      slot_of_;  // by register: the slot of the register; `none` if only one instruction writes it
  // For registers with one writer: the index of the instruction that writes the register.
  std::vector<std::uint32_t> written_at_;
  std::vector<std::uint32_t> registers_;                    // by slot: the register of the slot
  std::vector<value> single_;                               // by register: the value, if the register has one writer
  std::vector<std::vector<loop_register>> loop_registers_;  // by loop and slot
  std::vector<quantity_id> counters_;
  std::vector<state> at_entry_, at_end_;  // by block
  std::vector<used_operands> used_;       // by instruction
};

}  // namespace hpe::ptx::analysis
