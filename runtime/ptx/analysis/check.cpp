#include "runtime/ptx/analysis/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "runtime/ptx/analysis/words.h"

namespace hpe::ptx::analysis {

namespace {

constexpr std::size_t most_contradictions = 20;

std::int64_t sign_extended(std::uint64_t bits, unsigned count) {
  if (count >= 64) return static_cast<std::int64_t>(bits);
  return static_cast<std::int64_t>(bits << (64 - count)) >> (64 - count);
}

std::uint64_t cut(__int128 value, unsigned bits) {
  const auto low = static_cast<std::uint64_t>(value);
  return bits >= 64 ? low : low & ((std::uint64_t{1} << bits) - 1);
}

template <class T>
bool holds(relation how, T a, T b) {
  switch (how) {
    case relation::equal: return a == b;
    case relation::unequal: return a != b;
    case relation::less: return a < b;
    case relation::less_or_equal: return a <= b;
    case relation::greater: return a > b;
    default: return a >= b;
  }
}

std::uint32_t index_of(const dimensions& d, std::size_t axis) { return axis == 0 ? d.x : axis == 1 ? d.y : d.z; }

}  // namespace

record_check::record_check(const image& variables, const kernel_analysis& k)
    : variables_(variables), kernel_(k), table_(k.walk->table()), at_(k.kernel->code.size()) {
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
  block_ = &block;
  thread_ = thread;
  state_ = &state;
  evaluated_.clear();
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
  const dimensions t = block_->thread_of(thread_);
  contradictions_.push_back(fmt::format("{}, '{}', block ({}, {}, {}), thread ({}, {}, {}): {}", kernel_.kernel->name,
                                        variables_.program().text_of(*kernel_.kernel, i), block_->ctaid.x,
                                        block_->ctaid.y, block_->ctaid.z, t.x, t.y, t.z, what));
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
          a, fmt::format("the address {:#x} is not {} in the block index", address, name_of(a.forms[n].how)));
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
  if (!assumptions_hold(f.assumes)) return outcome::outside;
  const number whole = evaluate(f.whole);
  if (!whole) return outcome::unknown;
  return cut(*whole, 64) == address ? outcome::right : outcome::wrong;
}

// Subtracts the part of the block index: what remains depends only on the thread and the counters.
bool record_check::same_in_all_blocks(const access& a, std::size_t form, std::uint64_t address) {
  const address_form& f = a.forms[form];
  std::uint64_t remainder = address;
  for (std::size_t axis = 0; axis < f.blocks.size(); ++axis) {
    const number factor = evaluate(f.blocks[axis]);
    if (!factor) return true;  // the same for the whole grid, but not known
    remainder -= cut(*factor, 64) * index_of(block_->ctaid, axis);
  }
  std::vector<std::int64_t> key = state_->counters;
  key.insert(key.end(), {a.position, static_cast<std::int64_t>(form), thread_});
  const auto [known, is_new] = remainders_.try_emplace(std::move(key), remainder);
  return is_new || known->second == remainder;
}

void record_check::check(const access& a, const comparison& c) {
  if (!assumptions_hold(c.assumes)) return;
  const number left = evaluate(c.left), right = evaluate(c.right);
  if (!left || !right) return;
  const std::uint64_t x = cut(*left, c.bits), y = cut(*right, c.bits);
  const bool right_one =
      c.is_signed ? holds(c.how, sign_extended(x, c.bits), sign_extended(y, c.bits)) : holds(c.how, x, y);
  if (!right_one) contradict(a, fmt::format("{} does not hold", words(variables_.program(), kernel_).of(c)));
}

bool record_check::assumptions_hold(assumption_set needed) {
  const std::vector<assumption>& all = kernel_.walk->assumptions().all();
  for (std::size_t n = 0; n < all.size(); ++n) {
    if ((needed >> n & 1) == 0) continue;
    const number value = evaluate(all[n].of);
    // An assumption about a value that is not known may be broken; then nothing is claimed.
    if (!value || !range{*value, *value}.lies_in(range_of_bits(all[n].bits, all[n].is_signed))) return false;
  }
  return true;
}

record_check::number record_check::evaluate(expression_id e) {
  __int128 sum = 0;
  for (const term& t : table_.at(e)) {
    __int128 product = t.factor;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const number factor = evaluate_quantity(t.of.factors[n]);
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

record_check::number record_check::evaluate_quantity(quantity_id id) {
  const auto [known, is_new] = evaluated_.try_emplace(id);
  if (!is_new) return known->second;
  const quantity& q = table_.of(id);
  number result;
  switch (q.what) {
    case quantity::kind::block_index: result = index_of(block_->ctaid, q.number); break;
    case quantity::kind::thread_index: result = index_of(block_->thread_of(thread_), q.number); break;
    case quantity::kind::block_size: result = index_of(block_->ntid, q.number); break;
    case quantity::kind::grid_size: result = index_of(block_->nctaid, q.number); break;
    case quantity::kind::counter: result = state_->counters[q.number]; break;
    case quantity::kind::variable:
      if (variables_.program().symbols[q.number].where != symbol::space::shared)
        result = static_cast<std::int64_t>(variables_.address_of(q.number));
      break;
    case quantity::kind::parameter: {
      std::uint64_t bits = 0;
      std::memcpy(&bits, block_->parameters + q.number, q.bits / 8);
      result = q.values.low >= 0 ? static_cast<__int128>(bits) : sign_extended(bits, q.bits);
      break;
    }
    case quantity::kind::node: result = evaluate_node(q); break;
    default: break;
  }
  evaluated_[id] = result;
  return result;
}

record_check::number record_check::evaluate_node(const quantity& q) {
  std::uint64_t operands[4] = {0, 0, 0, q.extra};
  for (std::size_t n = 0; n < q.operands.size(); ++n) {
    const number value = evaluate(q.operands[n]);
    if (!value) return std::nullopt;
    operands[n] = cut(*value, q.widths[n]);
  }
  const std::uint64_t bits =
      cut(static_cast<__int128>(q.function(operands[0], operands[1], operands[2], operands[3])), q.bits);
  return q.bits == 1 ? static_cast<std::int64_t>(bits) : sign_extended(bits, q.bits);
}

}  // namespace hpe::ptx::analysis
