// Two kinds of loops do not wait, although an atomic operation decides when they end. The first is the loop of a
// lock-free update: it compares memory with the value that it has read, and repeats only if another thread has updated
// the memory. The second is a loop that gets numbers from an atomic counter.

#include "runtime/ptx/analysis/block_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runtime/ptx/analysis/called_functions.h"

namespace hpe::ptx::analysis {

namespace {

// Whether the instruction loads the result of a call.
bool is_result_of_call(const instruction& i) {
  return i.kind == kind::load && !i.sources.empty() && i.sources[0].what == operand::kind::scratch;
}

bool may_be_global(const instruction& i) {
  const modifier space = space_of(i);
  return space == modifier::global || space == modifier::count;
}

// Whether a load reads memory that threads may write. Constants, parameters and results of calls are not such memory.
bool reads_memory(const instruction& i) {
  using enum modifier;
  const modifier space = space_of(i);
  const operand::kind where = i.sources[0].what;
  return !i.has(nc) && (space == shared || space == local || space == global || space == modifier::count) &&
         where != operand::kind::formal && where != operand::kind::scratch;
}

// Whether the instruction copies between global and shared memory. Its first operand is the destination, the second
// operand the source.
bool is_copy(const instruction& i) {
  return (i.kind == kind::copy_async || (i.kind == kind::routine && i.op == opcode::cp)) && i.sources.size() > 1;
}

// Searches for a wait in one loop.
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
        if (i.kind == kind::call) {
          called_.add(i);
          calls_.push_back(n);
        }
        if (stores(i) || is_argument(i) || i.kind == kind::atomic || is_copy(i)) writes_.push_back(n);
      }
    }
    std::ranges::sort(calls_);
    has_fence_ |= called_.has_fence;
    synchronises_ |= called_.synchronises;
  }

  std::optional<std::uint32_t> run() {
    follow(walk_.endings_of(loop_), rest_);
    // Examines first the values that reach the end of the loop in registers, then the values that reach it through
    // memory.
    for (;; rest_.swap(behind_memory_), is_behind_memory_ = true) {
      while (!rest_.empty()) {
        const expression_id e = rest_.back();
        rest_.pop_back();
        for (const term& t : table_.at(e))
          for (std::size_t n = 0; n < t.of.count; ++n)
            if (const auto found = look_at(t.of.factors[n])) return found;
      }
      if (behind_memory_.empty()) return std::nullopt;
    }
  }

 private:
  // The address of an access, as far as it is known.
  struct location {
    expression_id address = 0;
    std::optional<quantity_id>
        place;                      // the term that is a variable or the thread's local memory, if there is exactly one
    const access* known = nullptr;  // null if the access is not to global memory
  };

  std::optional<std::uint32_t> look_at(quantity_id id) {
    if (!seen_.insert(id).second) return std::nullopt;
    const quantity& q = table_.of(id);
    if (q.what == quantity::kind::result && !q.is_thread && q.number < function_.code.size() && is_inside(q.number)) {
      if (waits_at(q.number)) return q.number;
      if (const auto found = look_at_stored(q.number)) return found;
    }
    rest_.insert(rest_.end(), q.operands.begin(), q.operands.end());
    rest_.insert(rest_.end(), q.conditions.begin(), q.conditions.end());
    // After an inner loop, the value also depends on the decisions that end that loop.
    const auto& loops = walk_.flow().loops();
    for (std::uint32_t inner = 0; inner < loops.size(); ++inner)
      if (inner != loop_ && q.varies.has(inner) && walk_.flow().blocks()[loops[inner].header].loops.has(loop_) &&
          seen_loops_.insert(inner).second)
        follow(walk_.endings_of(inner), rest_);
    return std::nullopt;
  }

  static void follow(const std::vector<kernel_walk::decision>& decisions, std::vector<expression_id>& to) {
    for (const kernel_walk::decision& d : decisions) to.push_back(d.what.of);
  }

  [[nodiscard]] bool is_inside(std::uint32_t position) const {
    return walk_.flow().blocks()[walk_.flow().block_at(position)].loops.has(loop_);
  }

  // Whether an instruction of the loop reads a value that another block writes, and thereby waits. A waiting thread
  // reads the same address in each iteration. Therefore an atomic operation whose address changes, and whose value
  // reaches the end of the loop only through memory, is not a wait. For example, a search may mark the nodes of a
  // graph, one after the other, by atomic operations.
  [[nodiscard]] bool waits_at(std::uint32_t position) {
    const instruction& i = function_.code[position];
    if (is_shared(i)) return false;
    if (is_result_of_call(i)) return call_waits(position);
    if (i.kind == kind::load)
      return may_be_global(i) && (i.is_strong() || has_fence_ || (rereads(i) && is_set_by_others(position, 0)));
    if (i.kind != kind::atomic) return false;
    if (is_behind_memory_ && moves(location_of(position).address)) return false;
    const value& operand = walk_.source_of(position, 1);
    if (i.has(modifier::op_cas)) return !table_.varies(operand.of).has(loop_);
    return !takes_numbers(i) || table_.constant_of(operand.of) == 0;
  }

  // Whether the call that returned the value at position `result` waits for another block.
  [[nodiscard]] bool call_waits(std::uint32_t result) {
    const auto call = call_of(result);
    if (!called_.polls && !called_.counts) return false;
    const called_functions& called = call && function_.code[*call].sources.empty() ? functions_of(*call) : called_;
    const std::vector<std::uint32_t> arguments = arguments_of(call);
    const bool passes_zero = called.may_pass_zero || std::ranges::any_of(arguments, [&](std::uint32_t n) {
                               return table_.constant_of(walk_.source_of(n, 1).of) == 0;
                             });
    if (!called.polls && !(called.counts && passes_zero)) return false;
    if (!is_behind_memory_ || !called.symbols.empty()) return true;
    bool has_address = false;
    for (const std::uint32_t n : arguments) {
      if (!may_be_address(n)) continue;
      if (!moves(walk_.source_of(n, 1).of)) return true;
      has_address = true;
    }
    return !has_address;
  }

  // Returns the position of the call whose result an instruction loads; empty if unknown. All calls use the same memory
  // for arguments and results, so the result is from the last call before the load.
  [[nodiscard]] std::optional<std::uint32_t> call_of(std::uint32_t result) const {
    const std::uint64_t place = function_.code[result].sources[0].value;
    const auto later = std::ranges::lower_bound(calls_, result);
    if (later == calls_.begin()) return std::nullopt;
    const std::uint32_t call = *std::prev(later);
    return holds(function_.code[call].returns, place) ? std::optional(call) : std::nullopt;
  }

  // Returns the instructions of the loop that store the arguments of `call`. These instructions are between the
  // previous call and `call`. If they do not store all arguments, or if the call is unknown, returns the instructions
  // that store arguments of any call.
  [[nodiscard]] std::vector<std::uint32_t> arguments_of(std::optional<std::uint32_t> call) const {
    std::vector<std::uint32_t> all, its;
    std::uint32_t before = 0;
    for (const std::uint32_t other : calls_)
      if (call && other < *call) before = other;
    for (const std::uint32_t n : writes_) {
      if (!is_argument(function_.code[n])) continue;
      all.push_back(n);
      if (call && n >= before && n < *call &&
          holds(function_.code[*call].arguments, function_.code[n].sources[0].value))
        its.push_back(n);
    }
    return call && its.size() >= function_.code[*call].arguments.size() ? its : all;
  }

  static bool holds(const std::vector<argument>& all, std::uint64_t place) {
    return std::ranges::any_of(
        all, [&](const argument& a) { return place >= a.offset && place < std::uint64_t{a.offset} + a.size; });
  }

  // Returns the summary of the functions that run in a call.
  [[nodiscard]] const called_functions& functions_of(std::uint32_t call) {
    const auto [known, is_new] = callees_.try_emplace(function_.code[call].callee, program_);
    if (is_new) known->second.add(function_.code[call]);
    return known->second;
  }

  [[nodiscard]] bool may_be_address(std::uint32_t argument) const {
    return bytes_of(function_.code[argument].types[0]) == 8;
  }

  // Whether a value may change from one iteration to the next. Local memory that the loop does not write does not
  // change.
  [[nodiscard]] bool moves(expression_id e) {
    std::set<quantity_id> seen;
    std::vector<expression_id> open{e};
    while (!open.empty()) {
      const polynomial terms = table_.at(open.back());
      open.pop_back();
      for (const term& t : terms) {
        for (std::size_t n = 0; n < t.of.count; ++n) {
          const quantity& q = table_.of(t.of.factors[n]);
          if (!q.varies.has(loop_) || !seen.insert(t.of.factors[n]).second) continue;
          if (q.what == quantity::kind::node || q.what == quantity::kind::choice) {
            open.insert(open.end(), q.operands.begin(), q.operands.end());
            open.insert(open.end(), q.conditions.begin(), q.conditions.end());
          } else if (is_load_of_local(q)) {
            if (std::ranges::any_of(writes_, [&](std::uint32_t store) { return may_alias(q.number, store); }))
              return true;
            open.push_back(location_of(q.number).address);
          } else {
            return true;
          }
        }
      }
    }
    return false;
  }

  [[nodiscard]] bool is_load_of_local(const quantity& q) {
    if (q.what != quantity::kind::result || q.is_thread || q.number >= function_.code.size()) return false;
    const instruction& i = function_.code[q.number];
    if (i.kind != kind::load || !reads_memory(i)) return false;
    const auto place = location_of(q.number).place;
    return place && is_local(*place);
  }

  // Whether each iteration reads memory again with this load, which has no memory order.
  [[nodiscard]] bool rereads(const instruction& load) const { return synchronises_ || load.has(modifier::cg); }

  // If the instruction loads from memory that the loop writes, the end of the loop also depends on the written values,
  // and on the branches that decide whether the loop writes them. Adds both to behind_memory_. Returns the position of
  // an instruction that waits, if there is one.
  std::optional<std::uint32_t> look_at_stored(std::uint32_t load) {
    const instruction& i = function_.code[load];
    if ((i.kind != kind::load && i.kind != kind::atomic) || !(reads_memory(i) || is_result_of_call(i)))
      return std::nullopt;
    const bool is_load = i.kind == kind::load && !is_result_of_call(i);
    if (is_load &&
        !seen_loads_.insert({location_of(load).address, i.vector * bytes_of(i.types[0]), space_of(i)}).second)
      return std::nullopt;
    if (is_load && is_of_block(load) && is_set_by_call(load)) return load;
    for (const std::uint32_t store : writes_) {
      if (store == load || seen_writes_.contains(store) || !may_alias(load, store)) continue;
      seen_writes_.insert(store);
      const instruction& s = function_.code[store];
      if (is_copy(s)) {
        if ((has_fence_ || synchronises_) && is_set_by_others(store, 1)) return store;
      } else {
        for (std::size_t n = 1; n < s.sources.size(); ++n) behind_memory_.push_back(walk_.source_of(store, n).of);
      }
      if (const auto guard = walk_.guard_of(store)) behind_memory_.push_back(guard->predicate);
      follow_decisions_before(walk_.flow().block_at(store));
    }
    return std::nullopt;
  }

  // Whether a function that the loop calls may copy a value from another block into the shared or local memory from
  // which an instruction loads. To do so, the function must name the variable or receive a pointer to it.
  [[nodiscard]] bool is_set_by_call(std::uint32_t load) {
    if (!called_.polls) return false;
    const auto place = location_of(load).place;
    for (const std::uint32_t call : calls_) {
      const called_functions& called = function_.code[call].sources.empty() ? functions_of(call) : called_;
      if (!called.polls) continue;
      const bool is_in_local = space_of(function_.code[load]) == modifier::local || (place && is_local(*place));
      if (!called.stores_to_any && (is_in_local || !called.stores_to_shared)) continue;
      if (!place || names(called, *place)) return true;
      for (const std::uint32_t n : arguments_of(call))
        if (may_point_to(walk_.source_of(n, 1).of, load, may_be_address(n))) return true;
    }
    return false;
  }

  [[nodiscard]] bool names(const called_functions& called, quantity_id place) const {
    const quantity& q = table_.of(place);
    if (q.what != quantity::kind::variable) return false;
    return std::ranges::any_of(called.symbols, [&](std::uint32_t symbol) {
      return symbol == q.number || (is_dynamic(place) && program_.symbols[symbol].is_dynamic_shared);
    });
  }

  // Whether the argument `pointer` may point to the variable from which an instruction loads.
  [[nodiscard]] bool may_point_to(expression_id pointer, std::uint32_t load, bool may_be_address) {
    const location& from = location_of(load);
    if (mentions(pointer, *from.place)) {
      const auto difference = table_.sum(from.address, pointer, -1);
      const auto bytes = difference ? table_.constant_of(*difference) : std::nullopt;
      return !bytes || *bytes >= 0;
    }
    return may_be_address && escapes(*from.place) && std::ranges::any_of(table_.at(pointer), [&](const term& t) {
             return std::any_of(t.of.factors.begin(), t.of.factors.begin() + t.of.count,
                                [&](quantity_id q) { return table_.of(q).is_data; });
           });
  }

  // Whether a value was read from memory. The operands of such a value contain only the address.
  [[nodiscard]] bool is_read(const quantity& q) const {
    if (q.what != quantity::kind::result || q.is_thread || q.number >= function_.code.size()) return false;
    const kind what = function_.code[q.number].kind;
    return what == kind::load || what == kind::atomic;
  }

  // Whether the value of an expression is computed from the address of a variable.
  [[nodiscard]] bool mentions(expression_id e, quantity_id place) const {
    std::set<quantity_id> seen;
    std::vector<expression_id> open{e};
    while (!open.empty()) {
      const polynomial& terms = table_.at(open.back());
      open.pop_back();
      for (const term& t : terms) {
        for (std::size_t n = 0; n < t.of.count; ++n) {
          const quantity_id id = t.of.factors[n];
          if (id == place) return true;
          const quantity& q = table_.of(id);
          if (!seen.insert(id).second || is_read(q)) continue;
          open.insert(open.end(), q.operands.begin(), q.operands.end());
        }
      }
    }
    return false;
  }

  // Whether the function stores the address of a variable in memory, or passes it to a function.
  [[nodiscard]] bool escapes(quantity_id place) {
    const auto [known, is_new] = escapes_.try_emplace(place, false);
    if (!is_new) return known->second;
    for (std::uint32_t n = 0; n < function_.code.size(); ++n) {
      const instruction& i = function_.code[n];
      if ((i.kind != kind::store && i.kind != kind::atomic) || !is_reachable(n)) continue;
      for (std::size_t k = 1; k < i.sources.size(); ++k)
        if (mentions(walk_.source_of(n, k).of, place)) return known->second = true;
    }
    return false;
  }

  [[nodiscard]] bool is_reachable(std::uint32_t position) const {
    return walk_.flow().blocks()[walk_.flow().block_at(position)].is_reachable;
  }

  // Adds the decisions that determine whether an iteration reaches a block. If the loop stores in more than 64 blocks,
  // adds all branches of the loop.
  void follow_decisions_before(std::uint32_t block) {
    constexpr std::size_t most = 64;
    if (seen_blocks_.size() > most || !seen_blocks_.insert(block).second) return;
    if (seen_blocks_.size() <= most) return follow(walk_.decisions_before(loop_, block), behind_memory_);
    for (const std::uint32_t b : walk_.flow().loops()[loop_].blocks)
      if (const auto decision = walk_.decision_of(b)) behind_memory_.push_back(decision->of);
  }

  // Whether an instruction accesses shared or local memory.
  [[nodiscard]] bool is_of_block(std::uint32_t position) {
    const modifier space = space_of(function_.code[position]);
    if (space != modifier::count) return space == modifier::shared || space == modifier::local;
    const auto place = location_of(position).place;
    return place && is_of_block_or_thread(*place);
  }

  [[nodiscard]] bool is_of_block_or_thread(quantity_id place) const {
    const quantity& q = table_.of(place);
    return q.what != quantity::kind::variable || program_.symbols[q.number].where == symbol::space::shared;
  }

  [[nodiscard]] bool is_local(quantity_id place) const { return table_.of(place).what != quantity::kind::variable; }

  [[nodiscard]] const location& location_of(std::uint32_t position) {
    const auto [known, is_new] = locations_.try_emplace(position);
    location& l = known->second;
    if (!is_new) return l;
    l.address = walk_.address_of(position, 0).of;
    l.place = place_of(l.address);
    const auto found = std::ranges::find(accesses_, position, &access::position);
    if (found != accesses_.end() && found->operand == 0) l.known = &*found;
    return l;
  }

  // Returns the term of an address that is a variable or the thread's local memory; empty unless there is exactly one.
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

  [[nodiscard]] bool may_alias(std::uint32_t load, std::uint32_t store) {
    const instruction &l = function_.code[load], &s = function_.code[store];
    // The result of a call may be any of its arguments and any value in memory.
    if (is_result_of_call(l)) return true;
    if (is_argument(s)) return false;
    if (is_copy(s)) return !s.has(modifier::bulk_group) && space_of(l) != modifier::local;
    const modifier a = space_of(l), b = space_of(s);
    if (a != b && a != modifier::count && b != modifier::count) return false;
    const location &from = location_of(load), &to = location_of(store);
    if (!from.place || !to.place) return !are_apart(from, to) && !are_apart(to, from);
    if (*from.place != *to.place) return is_dynamic(*from.place) && is_dynamic(*to.place);
    if (!is_constant(from.address) || !is_constant(to.address)) return true;
    const auto difference = table_.sum(from.address, to.address, -1);
    const auto bytes = difference ? table_.constant_of(*difference) : std::nullopt;
    if (!bytes) return true;
    return *bytes < std::int64_t{s.vector} * bytes_of(s.types[0]) &&
           -*bytes < std::int64_t{l.vector} * bytes_of(l.types[0]);
  }

  // Whether two addresses are certainly in different memory: in different arrays or in disjoint parts of an array;
  // `one` in a shared variable or in local memory, and `other` in an array; or `one` in local memory that does not
  // escape, and `other` not derived from the address of this memory.
  [[nodiscard]] bool are_apart(const location& one, const location& other) {
    const bool is_other_global = other.known != nullptr && is_in_arrays(*other.known);
    if (is_other_global && one.known != nullptr)
      return std::ranges::all_of(one.known->forms, [&](const address_form& a) {
        return a.base && std::ranges::all_of(other.known->forms, [&](const address_form& b) {
                 return a.base != b.base || are_disjoint(*one.known, a, *other.known, b);
               });
      });
    if (!one.place || !is_of_block_or_thread(*one.place)) return false;
    return is_other_global || (is_local(*one.place) && !escapes(*one.place) && !mentions(other.address, *one.place));
  }

  // Whether an access is certainly to global memory, and its array is known in each of its forms.
  [[nodiscard]] bool is_in_arrays(const access& a) {
    return std::ranges::all_of(a.forms, [](const address_form& f) { return f.base.has_value(); }) &&
           (space_of(function_.code[a.position]) == modifier::global ||
            (a.forms.size() == 1 && a.forms[0].whole == location_of(a.position).address));
  }

  // Whether two accesses to one array never touch the same byte in any two threads, such as accesses to two members of
  // a struct.
  [[nodiscard]] bool are_disjoint(const access& a, const address_form& f, const access& b,
                                  const address_form& g) const {
    if (a.bytes == 0 || b.bytes == 0 || !is_same_for_all(f) || !is_same_for_all(g)) return false;
    const auto difference = table_.sum(f.rest, g.rest, -1);
    const auto bytes = difference ? table_.constant_of(*difference) : std::nullopt;
    return bytes && (*bytes >= std::int64_t{b.bytes} || -*bytes >= std::int64_t{a.bytes});
  }

  // Whether all threads of the grid use the same address during the whole launch.
  [[nodiscard]] bool is_same_for_all(const address_form& f) const {
    if (std::ranges::any_of(f.blocks, [](expression_id e) { return e != 0; })) return false;
    return std::ranges::all_of(table_.at(f.rest), [&](const term& t) {
      return std::all_of(t.of.factors.begin(), t.of.factors.begin() + t.of.count, [&](quantity_id q) {
        const quantity::kind what = table_.of(q).what;
        return what == quantity::kind::parameter || what == quantity::kind::block_size ||
               what == quantity::kind::grid_size;
      });
    });
  }

  // Whether `place` is a variable in dynamic shared memory. All variables there begin at the same address.
  [[nodiscard]] bool is_dynamic(quantity_id place) const {
    const quantity& q = table_.of(place);
    return q.what == quantity::kind::variable && program_.symbols[q.number].is_dynamic_shared;
  }

  // Whether an address is the same in all iterations of all loops, and is a sum of single quantities with factor 1 and
  // a constant.
  [[nodiscard]] bool is_constant(expression_id address) const {
    return std::ranges::all_of(table_.at(address),
                               [&](const term& t) { return t.of.count <= 1 && (t.of.count == 0 || t.factor == 1); }) &&
           table_.varies(address).empty();
  }

  // Whether every iteration reads the same address, and other blocks, but not the loop itself, write to this address.
  [[nodiscard]] bool is_set_by_others(std::uint32_t position, std::uint32_t operand) {
    if (table_.varies(walk_.address_of(position, operand).of).has(loop_)) return false;
    const auto read = std::ranges::find(accesses_, position, &access::position);
    if (read == accesses_.end()) return false;
    bool is_set = false;
    for (const access& write : accesses_) {
      if (write.what == access_kind::read) continue;
      for (const address_form& r : read->forms) {
        for (const address_form& w : write.forms) {
          if (!r.base || r.base != w.base || are_disjoint(*read, r, write, w)) continue;
          if (is_inside(write.position)) return false;
          is_set |= is_of_another_block(r, w);
        }
      }
    }
    return is_set || passes_to_calls(*read);
  }

  // Whether the function passes a pointer to the bytes that `read` accesses to a callee outside of the loop. A pointer
  // to a member of a struct does not count if the access is to an earlier member.
  [[nodiscard]] bool passes_to_calls(const access& read) {
    for (std::uint32_t n = 0; n < function_.code.size(); ++n) {
      if (!is_argument(function_.code[n]) || is_inside(n) || !is_reachable(n)) continue;
      const expression_id pointer = walk_.source_of(n, 1).of;
      for (const address_form& r : read.forms) {
        if (!r.base) continue;
        const bool passes = std::ranges::any_of(
            table_.at(pointer), [&](const term& t) { return t.of.count == 1 && t.of.factors[0] == *r.base; });
        if (!passes) continue;
        const auto difference = table_.sum(r.whole, pointer, -1);
        const auto bytes = difference ? table_.constant_of(*difference) : std::nullopt;
        if (!bytes || read.bytes == 0 || !is_same_for_all(r) || *bytes + read.bytes > 0) return true;
      }
    }
    return false;
  }

  // Whether one block may read a value that another block writes. If both addresses increase by the same number of
  // bytes from block to block, this is possible only if the addresses differ by a multiple of that number.
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
  bool has_fence_ = false;     // whether the loop has a fence that reaches other blocks
  bool synchronises_ = false;  // whether the loop has a fence or a barrier
  called_functions called_;    // all functions that the loop calls
  std::vector<std::uint32_t> calls_,
      writes_;  // positions of calls, and of instructions that write memory
  // Caches, filled on demand:
  std::map<std::uint32_t, called_functions> callees_;  // by callee
  std::map<std::uint32_t, location> locations_;        // by position
  std::map<quantity_id, bool> escapes_;                // by variable
  std::set<quantity_id> seen_;
  // By address, width and state space: the loads that look_at_stored has examined.
  std::set<std::tuple<expression_id, std::uint32_t, modifier>> seen_loads_;
  std::set<std::uint32_t> seen_writes_, seen_blocks_, seen_loops_;
  // Expressions on which the loop's end depends, and which run() has not examined yet.
  std::vector<expression_id> rest_, behind_memory_;
  bool is_behind_memory_ = false;  // whether the values in rest_ reach the loop's end through memory
};

}  // namespace

std::optional<std::uint32_t> find_wait(const program& p, const function& f, kernel_walk& walk,
                                       const std::vector<access>& accesses, std::uint32_t loop) {
  return wait_search(p, f, walk, accesses, loop).run();
}

}  // namespace hpe::ptx::analysis
