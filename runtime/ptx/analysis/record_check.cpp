#include "runtime/ptx/analysis/record_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/ptx/analysis/words.h"

namespace hpe::ptx::analysis {

namespace {

constexpr std::size_t most_contradictions = 20;

}  // namespace

record_check::record_check(const image& variables, const kernel_analysis& k)
    : variables_(variables),
      kernel_(k),
      evaluator_(k,
                 [&variables](std::uint32_t symbol) -> evaluator::number {
                   if (variables.program().symbols[symbol].where == symbol::space::shared) return std::nullopt;
                   return static_cast<std::int64_t>(variables.address_of(symbol));
                 }),
      at_(k.kernel->code.size()) {
  for (const access& a : k.accesses)
    if (a.inside == nullptr) at_[a.position].push_back(&a);
}

void record_check::comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                            const std::uint64_t* registers, bool runs) {
  if (&f != kernel_.kernel || !kernel_.walk->is_complete()) return;
  const flow_graph& flow = kernel_.walk->flow();
  const dimensions& grid = block.nctaid;
  const std::uint64_t number =
      block.ctaid.x + std::uint64_t{grid.x} * (block.ctaid.y + std::uint64_t{grid.y} * block.ctaid.z);
  std::vector<thread_state>& threads = blocks_[number];
  if (threads.empty()) threads.resize(block.thread_count);
  thread_state& state = threads[thread];
  if (state.counters.empty()) state.counters.resize(flow.loops().size() + 1);
  const std::uint32_t here = flow.block_at(position);
  if (const auto loop = flow.blocks()[here].heads; loop && position == flow.blocks()[here].first) {
    const bool again = state.last != ~0U && flow.blocks()[flow.block_at(state.last)].loops.has(*loop);
    state.counters[*loop] = again ? state.counters[*loop] + 1 : 0;
  }
  state.last = position;
  if (!runs || at_[position].empty()) return;
  state_ = &state;
  thread_ = thread;
  place_ = {grid, block.ntid, block.ctaid, block.thread_of(thread), block.parameters, state.counters.data()};
  evaluator_.go_to(place_);
  for (const access* const a : at_[position]) {
    const operand& o = f.code[position].sources[a->operand];
    const std::uint64_t base = o.is_register()                   ? registers[o.index]
                               : o.what == operand::kind::symbol ? variables_.address_of(o.index)
                                                                 : 0;
    check(*a, base + o.value);
    for (const comparison& c : a->where) check(*a, c);
  }
}

void record_check::contradict(const access& a, const std::string& what) {
  if (contradictions_.size() >= most_contradictions) return;
  const instruction& i = kernel_.kernel->code[a.position];
  const dimensions &b = place_.block, &t = place_.thread;
  contradictions_.push_back(fmt::format("{}, '{}', block ({}, {}, {}), thread ({}, {}, {}): {}", kernel_.kernel->name,
                                        variables_.program().text_of(*kernel_.kernel, i), b.x, b.y, b.z, t.x, t.y, t.z,
                                        what));
}

void record_check::check(const access& a, std::uint64_t address) {
  bool all_wrong = true, any_outside = false;
  for (std::size_t n = 0; n < a.forms.size(); ++n) {
    const outcome found = compare(a, n, address);
    any_outside |= found == outcome::outside;
    all_wrong &= found == outcome::wrong;
    const bool judged = a.forms[n].how <= address_class::affine &&
                        (found == outcome::right || (found == outcome::unknown && a.forms.size() == 1));
    if (judged && !same_in_all_blocks(a, n, address))
      return contradict(
          a, fmt::format("the address {:#x} contradicts the class {} of its dependence on the block index", address,
                         name_of(a.forms[n].how)));
    if (found == outcome::right) {
      ++exact_;
      return;
    }
    if (judged) {
      ++alike_;
      return;
    }
  }
  if (all_wrong)
    return contradict(a, fmt::format("the address is {:#x}, and not {}", address,
                                     words(variables_.program(), kernel_).of(a.forms[0].whole)));
  ++(any_outside ? outside_ : unchecked_);
}

record_check::outcome record_check::compare(const access& a, std::size_t form, std::uint64_t address) {
  const address_form& f = a.forms[form];
  if (!evaluator_.assumptions_hold(f.assumes)) return outcome::outside;
  const number whole = evaluator_.of(f.whole);
  if (!whole) return outcome::unknown;
  return low_bits(*whole, 64) == address ? outcome::right : outcome::wrong;
}

// Subtracts the terms with block indices from the address. The remainder must depend only on the thread, on the
// counters of the loops around the access, and on the counters of ended grid-stride loops. Blocks may repeat a
// grid-stride loop a different number of times, although the address is `local`.
bool record_check::same_in_all_blocks(const access& a, std::size_t form, std::uint64_t address) {
  const address_form& f = a.forms[form];
  std::uint64_t remainder = address;
  for (std::size_t axis = 0; axis < f.blocks.size(); ++axis) {
    const number factor = evaluator_.of(f.blocks[axis]);
    if (!factor) return true;  // the factor is the same in the whole grid, but its value is unknown
    remainder -= low_bits(*factor, 64) * index_of(place_.block, axis);
  }
  std::vector<std::int64_t> key = state_->counters;
  const flow_graph& flow = kernel_.walk->flow();
  const loop_set counted = flow.blocks()[flow.block_at(a.position)].loops.with(whole_grids(f.rest));
  for (std::uint32_t l = 0; l < flow.loops().size(); ++l)
    if (a.forms.size() == 1 && !counted.has(l)) key[l] = 0;
  key.insert(key.end(), {a.position, static_cast<std::int64_t>(form), thread_});
  const auto [known, is_new] = remainders_.try_emplace(std::move(key), remainder);
  return is_new || known->second == remainder;
}

// Returns the grid-stride loops of an expression: the loops whose counters the expression multiplies by the grid's
// size.
loop_set record_check::whole_grids(expression_id e) const {
  const expressions& table = kernel_.walk->table();
  loop_set found;
  for (const term& t : table.at(e)) {
    bool is_grid = false;
    loop_set loops;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity& q = table.of(t.of.factors[n]);
      is_grid |= q.what == quantity::kind::grid_size;
      if (q.what == quantity::kind::counter) loops.add(q.number);
    }
    if (is_grid) found = found.with(loops);
  }
  return found;
}

void record_check::check(const access& a, const comparison& c) {
  if (!evaluator_.assumptions_hold(c.assumes)) return;
  if (evaluator_.holds(c) == false)
    contradict(a, fmt::format("{} does not hold", words(variables_.program(), kernel_).of(c)));
}

}  // namespace hpe::ptx::analysis
