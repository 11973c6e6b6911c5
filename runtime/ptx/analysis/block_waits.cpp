// Two kinds of loops end by themselves, although an atomic operation decides when they end: the loop of a lock-free
// update, which compares with the value that it read before and repeats only if another thread succeeded, and the loop
// that takes numbers from a counter.

#include "runtime/ptx/analysis/block_waits.h"

#include <algorithm>
#include <set>

namespace hpe::ptx::analysis {

namespace {

// Whether the instruction loads the result of a call.
bool is_result_of_call(const instruction& i) {
  return i.kind == kind::load && !i.sources.empty() && i.sources[0].what == operand::kind::scratch;
}

// Whether a load that is repeated sees each write of another thread at some time.
bool is_polling(const instruction& i) {
  return i.has(modifier::volatile_) || i.has(modifier::mmio) || i.has(modifier::cv) || is_ordered(i);
}

// The state space of an access; count if the address is generic.
modifier space_of(const instruction& i) {
  using enum modifier;
  return is_shared(i) ? shared : i.modifiers.one_of(global, local, constant, param, param_entry, param_func);
}

bool may_be_global(const instruction& i) {
  const modifier space = space_of(i);
  return space == modifier::global || space == modifier::count;
}

// Whether a load reads memory that threads write: not constants, parameters or results of calls.
bool reads_memory(const instruction& i) {
  using enum modifier;
  const modifier space = space_of(i);
  const operand::kind where = i.sources[0].what;
  return !i.has(nc) && (space == shared || space == local || space == global || space == modifier::count) &&
         where != operand::kind::formal && where != operand::kind::scratch;
}

// A copy between global and shared memory. The first operand is the destination, the second one the source.
bool is_copy(const instruction& i) {
  return (i.kind == kind::copy_async || (i.kind == kind::routine && i.op == opcode::cp)) && i.sources.size() > 1;
}

// Whether loads behind the instruction read memory again.
bool synchronises(const instruction& i) {
  return i.kind == kind::barrier || i.kind == kind::fence || (i.kind == kind::warp && i.op == opcode::bar);
}

// Whether the instruction stores an argument of a call.
bool is_argument(const instruction& i) { return i.kind == kind::store && i.sources[0].what == operand::kind::scratch; }

bool stores(const instruction& i) {
  return i.kind == kind::store && i.modifiers.one_of(modifier::param, modifier::param_func) == modifier::count;
}

bool takes_numbers(const instruction& atomic) {
  return atomic.modifiers.one_of(modifier::op_add, modifier::op_inc, modifier::op_dec) != modifier::count;
}

// The functions that a loop calls, directly or through others.
class called_functions {
 public:
  explicit called_functions(const program& p) : program_(p) {}

  void add(const instruction& call) {
    note(call);
    while (!rest_.empty()) {
      const function& f = *rest_.back();
      rest_.pop_back();
      for (const instruction& i : f.code) look(i);
    }
  }

  bool polls = false;          // reads what other threads write
  bool counts = false;         // adds a register to memory, and returns the value from before
  bool may_pass_zero = false;  // to another function, or to the addition
  bool stores_values = false;
  bool has_fence = false, synchronises = false;

 private:
  void note(const instruction& call) {
    if (!call.sources.empty()) {  // through a pointer: any function
      polls = stores_values = has_fence = synchronises = true;
    } else if (const function* const f = program_.functions[call.callee].get(); seen_.insert(f).second) {
      rest_.push_back(f);
    }
  }

  void look(const instruction& i) {
    if (i.kind == kind::call) return note(i);
    stores_values |= stores(i);
    has_fence |= reaches_device(i);
    synchronises |= analysis::synchronises(i);
    may_pass_zero |= (i.op == opcode::mov && is_zero(i.sources[0])) || (is_argument(i) && is_zero(i.sources[1]));
    if (is_shared(i)) return;
    polls |= i.kind == kind::load && (is_polling(i) || i.has(modifier::cg));
    if (i.kind != kind::atomic || i.results.empty()) return;
    counts |= takes_numbers(i) && i.sources[1].is_register();
    polls |= !takes_numbers(i) || is_zero(i.sources[1]);
  }

  static bool is_zero(const operand& o) { return o.what == operand::kind::immediate && o.value == 0; }

  const program& program_;
  std::set<const function*> seen_;
  std::vector<const function*> rest_;
};

// Looks at one loop.
class wait_search {
 public:
  wait_search(const program& p, const function& f, kernel_walk& walk, const std::vector<access>& accesses,
              std::uint32_t loop)
      : program_(p), function_(f), walk_(walk), table_(walk.table()), accesses_(accesses), loop_(loop), called_(p) {
    for (const std::uint32_t b : walk.flow().loops()[loop].blocks) {
      for (std::uint32_t n = walk.flow().blocks()[b].first; n < walk.flow().blocks()[b].last; ++n) {
        const instruction& i = f.code[n];
        has_fence_ |= reaches_device(i);
        synchronises_ |= synchronises(i);
        if (i.kind == kind::call) called_.add(i);
        if (stores(i) || is_argument(i) || i.kind == kind::atomic || is_copy(i)) writes_.push_back(n);
      }
    }
    has_fence_ |= called_.has_fence;
    synchronises_ |= called_.synchronises;
  }

  std::optional<std::uint32_t> run() {
    follow(walk_.endings_of(loop_));
    while (!rest_.empty()) {
      const expression_id e = rest_.back();
      rest_.pop_back();
      for (const term& t : table_.at(e))
        for (std::size_t n = 0; n < t.of.count; ++n)
          if (const auto found = look_at(t.of.factors[n])) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::uint32_t> look_at(quantity_id id) {
    if (!seen_.insert(id).second) return std::nullopt;
    const quantity& q = table_.of(id);
    if (q.what == quantity::kind::result && !q.is_thread && q.number < function_.code.size() && is_inside(q.number)) {
      if (waits_at(q.number)) return q.number;
      if (const auto found = look_at_stored(q.number)) return found;
    }
    rest_.insert(rest_.end(), q.operands.begin(), q.operands.end());
    rest_.insert(rest_.end(), q.conditions.begin(), q.conditions.end());
    // Behind an inner loop, the value depends on what ended that loop.
    const auto& loops = walk_.flow().loops();
    for (std::uint32_t inner = 0; inner < loops.size(); ++inner)
      if (inner != loop_ && q.varies.has(inner) && walk_.flow().blocks()[loops[inner].header].loops.has(loop_) &&
          seen_loops_.insert(inner).second)
        follow(walk_.endings_of(inner));
    return std::nullopt;
  }

  void follow(const std::vector<kernel_walk::decision>& decisions) {
    for (const kernel_walk::decision& d : decisions) rest_.push_back(d.what.of);
  }

  [[nodiscard]] bool is_inside(std::uint32_t position) const {
    return walk_.flow().blocks()[walk_.flow().block_at(position)].loops.has(loop_);
  }

  // Whether the instruction, which is in the loop, reads what another block writes.
  [[nodiscard]] bool waits_at(std::uint32_t position) const {
    const instruction& i = function_.code[position];
    if (is_shared(i)) return false;
    if (is_result_of_call(i)) return called_.polls || (called_.counts && passes_zero());
    if (i.kind == kind::load)
      return may_be_global(i) && (is_polling(i) || has_fence_ || (rereads(i) && is_set_by_others(position, 0)));
    if (i.kind != kind::atomic) return false;
    const value& operand = walk_.source_of(position, 1);
    if (i.has(modifier::op_cas)) return !table_.varies(operand.of).has(loop_);
    return !takes_numbers(i) || table_.constant_of(operand.of) == 0;
  }

  // Whether an argument of a call may be 0.
  [[nodiscard]] bool passes_zero() const {
    return called_.may_pass_zero || std::ranges::any_of(writes_, [&](std::uint32_t n) {
             return is_argument(function_.code[n]) && table_.constant_of(walk_.source_of(n, 1).of) == 0;
           });
  }

  // Whether each iteration reads memory again, although the load has no order.
  [[nodiscard]] bool rereads(const instruction& load) const { return synchronises_ || load.has(modifier::cg); }

  // If the instruction loads from memory that the loop writes, the end of the loop also depends on the written values,
  // and on the branches that decide whether they are written.
  std::optional<std::uint32_t> look_at_stored(std::uint32_t load) {
    const instruction& i = function_.code[load];
    if ((i.kind != kind::load && i.kind != kind::atomic) || !(reads_memory(i) || is_result_of_call(i)))
      return std::nullopt;
    if (called_.polls && called_.stores_values && is_of_block(load)) return load;
    for (const std::uint32_t store : writes_) {
      if (store == load || seen_writes_.contains(store) || !may_alias(load, store)) continue;
      seen_writes_.insert(store);
      const instruction& s = function_.code[store];
      if (is_copy(s)) {
        if ((has_fence_ || synchronises_) && is_set_by_others(store, 1)) return store;
      } else {
        for (std::size_t n = 1; n < s.sources.size(); ++n) rest_.push_back(walk_.source_of(store, n).of);
      }
      if (const auto guard = walk_.guard_of(store)) rest_.push_back(guard->predicate);
      follow_decisions_before(walk_.flow().block_at(store));
    }
    return std::nullopt;
  }

  // What decides whether an iteration comes to a block. If the loop stores in many blocks, all its branches.
  void follow_decisions_before(std::uint32_t block) {
    constexpr std::size_t most = 64;
    if (seen_blocks_.size() > most || !seen_blocks_.insert(block).second) return;
    if (seen_blocks_.size() <= most) return follow(walk_.decisions_before(loop_, block));
    for (const std::uint32_t b : walk_.flow().loops()[loop_].blocks)
      if (const auto decision = walk_.decision_of(b)) rest_.push_back(decision->of);
  }

  // Whether an instruction accesses shared or local memory.
  [[nodiscard]] bool is_of_block(std::uint32_t position) const {
    const modifier space = space_of(function_.code[position]);
    if (space != modifier::count) return space == modifier::shared || space == modifier::local;
    const auto place = place_of(walk_.address_of(position, 0).of);
    if (!place) return false;
    const quantity& q = table_.of(*place);
    return q.what != quantity::kind::variable || program_.symbols[q.number].where == symbol::space::shared;
  }

  // The one term of an address that is a variable or the thread's local memory.
  [[nodiscard]] std::optional<quantity_id> place_of(expression_id address) const {
    std::optional<quantity_id> found;
    for (const term& t : table_.at(address)) {
      if (t.of.count != 1 || t.factor != 1) continue;
      const quantity& q = table_.of(t.of.factors[0]);
      const bool is_local = q.what == quantity::kind::result && q.is_thread && q.bits == 64 &&
                            q.number == static_cast<std::uint32_t>(operand::kind::local);
      if (q.what != quantity::kind::variable && !is_local) continue;
      if (found) return std::nullopt;
      found = t.of.factors[0];
    }
    return found;
  }

  [[nodiscard]] bool may_alias(std::uint32_t load, std::uint32_t store) const {
    const instruction &l = function_.code[load], &s = function_.code[store];
    // A function may return any of its arguments, and any value in memory.
    if (is_result_of_call(l)) return true;
    if (is_argument(s)) return false;
    if (is_copy(s)) return !s.has(modifier::bulk_group) && space_of(l) != modifier::local;
    const modifier a = space_of(l), b = space_of(s);
    if (a != b && a != modifier::count && b != modifier::count) return false;
    const expression_id from = walk_.address_of(load, 0).of, to = walk_.address_of(store, 0).of;
    const auto place = place_of(from), other = place_of(to);
    if (!place || !other) return true;
    if (*place != *other) return is_dynamic(*place) && is_dynamic(*other);
    if (!is_constant(from) || !is_constant(to)) return true;
    const auto difference = table_.sum(from, to, -1);
    const auto bytes = difference ? table_.constant_of(*difference) : std::nullopt;
    if (!bytes) return true;
    return *bytes < std::int64_t{s.vector} * bytes_of(s.types[0]) &&
           -*bytes < std::int64_t{l.vector} * bytes_of(l.types[0]);
  }

  // Whether a place is a variable in dynamic shared memory, where all variables begin at the same address.
  [[nodiscard]] bool is_dynamic(quantity_id place) const {
    const quantity& q = table_.of(place);
    return q.what == quantity::kind::variable && program_.symbols[q.number].is_dynamic_shared;
  }

  // Whether an address is a place and a constant.
  [[nodiscard]] bool is_constant(expression_id address) const {
    return std::ranges::all_of(table_.at(address),
                               [&](const term& t) { return t.of.count <= 1 && (t.of.count == 0 || t.factor == 1); }) &&
           table_.varies(address).empty();
  }

  // Whether every iteration reads the same address, and other blocks write there, but the loop itself does not.
  [[nodiscard]] bool is_set_by_others(std::uint32_t position, std::uint32_t operand) const {
    if (table_.varies(walk_.address_of(position, operand).of).has(loop_)) return false;
    const auto read = std::ranges::find(accesses_, position, &access::position);
    if (read == accesses_.end()) return false;
    bool is_set = false;
    for (const access& write : accesses_) {
      if (write.what == access_kind::read) continue;
      for (const address_form& r : read->forms) {
        for (const address_form& w : write.forms) {
          if (!r.base || r.base != w.base) continue;
          if (is_inside(write.position)) return false;
          is_set |= is_of_another_block(r, w);
        }
      }
    }
    return is_set || passes_to_calls(*read);
  }

  // Whether the function passes the array of an access to a function that it calls outside of the loop.
  [[nodiscard]] bool passes_to_calls(const access& read) const {
    for (std::uint32_t n = 0; n < function_.code.size(); ++n) {
      if (!is_argument(function_.code[n]) || is_inside(n)) continue;
      if (!walk_.flow().blocks()[walk_.flow().block_at(n)].is_reachable) continue;
      for (const term& t : table_.at(walk_.source_of(n, 1).of))
        for (const address_form& r : read.forms)
          if (r.base && t.of.count == 1 && t.of.factors[0] == *r.base) return true;
    }
    return false;
  }

  // Whether a block may read what another block writes. If both addresses move with the block by the same number of
  // bytes, only if they differ by a multiple of this number.
  [[nodiscard]] bool is_of_another_block(const address_form& read, const address_form& write) const {
    const bool moves = std::ranges::any_of(read.blocks, [](expression_id e) { return e != 0; });
    if (!moves || read.blocks != write.blocks || read.how != address_class::affine ||
        write.how != address_class::affine)
      return true;
    const auto ahead = table_.sum(read.rest, write.rest, -1), behind = table_.sum(write.rest, read.rest, -1);
    if (!ahead || !behind) return true;
    const auto bytes = table_.constant_of(*ahead);
    return std::ranges::any_of(read.blocks, [&](expression_id step) {
      if (step == 0) return false;
      const auto constant = table_.constant_of(step);
      return bytes && constant ? *bytes != 0 && *bytes % *constant == 0 : *ahead == step || *behind == step;
    });
  }

  const program& program_;
  const function& function_;
  kernel_walk& walk_;
  expressions& table_;
  const std::vector<access>& accesses_;
  const std::uint32_t loop_;
  bool has_fence_ = false;     // a fence that reaches other blocks
  bool synchronises_ = false;  // a fence or a barrier
  called_functions called_;
  std::vector<std::uint32_t> writes_;  // positions of the instructions that write memory
  std::set<quantity_id> seen_;
  std::set<std::uint32_t> seen_writes_, seen_blocks_, seen_loops_;
  std::vector<expression_id> rest_;  // expressions on which the end depends, and which are still to be looked at
};

}  // namespace

bool is_shared(const instruction& i) {
  return i.modifiers.one_of(modifier::shared, modifier::shared_cta, modifier::shared_cluster) != modifier::count;
}

bool has_block_scope(const instruction& i) {
  return i.modifiers.one_of(modifier::cta, modifier::cluster) != modifier::count;
}

bool is_ordered(const instruction& i) {
  return i.modifiers.one_of(modifier::relaxed, modifier::acquire, modifier::release) != modifier::count;
}

bool reaches_device(const instruction& i) {
  return i.kind == kind::fence && !has_block_scope(i) && !i.has(modifier::proxy) && !i.has(modifier::mbarrier_init);
}

std::optional<std::uint32_t> find_wait(const program& p, const function& f, kernel_walk& walk,
                                       const std::vector<access>& accesses, std::uint32_t loop) {
  return wait_search(p, f, walk, accesses, loop).run();
}

}  // namespace hpe::ptx::analysis
