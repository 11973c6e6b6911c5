#include "runtime/ptx/analysis/evaluator.h"

#include <cstring>

namespace hpe::ptx::analysis {

namespace {

std::int64_t sign_extended(std::uint64_t bits, unsigned count) {
  if (count >= 64) return static_cast<std::int64_t>(bits);
  return static_cast<std::int64_t>(bits << (64 - count)) >> (64 - count);
}

template <class T>
bool compare(relation how, T a, T b) {
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

std::uint64_t low_bits(__int128 value, unsigned count) {
  const auto low = static_cast<std::uint64_t>(value);
  return count >= 64 ? low : low & ((std::uint64_t{1} << count) - 1);
}

evaluator::evaluator(const kernel_analysis& k, std::function<number(std::uint32_t)> address_of)
    : kernel_(k), table_(k.walk->table()), address_of_(std::move(address_of)), known_(table_.quantities()) {}

void evaluator::go_to(const thread_place& place) {
  place_ = &place;
  forget();
}

evaluator::number evaluator::of(expression_id e) {
  __int128 sum = 0;
  for (const term& t : table_.at(e)) {
    __int128 product = t.factor;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const number factor = of_quantity(t.of.factors[n]);
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<bool> evaluator::holds(const comparison& c) {
  const number left = of(c.left), right = of(c.right);
  if (!left || !right) return std::nullopt;
  const std::uint64_t x = low_bits(*left, c.bits), y = low_bits(*right, c.bits);
  return c.is_signed ? compare(c.how, sign_extended(x, c.bits), sign_extended(y, c.bits)) : compare(c.how, x, y);
}

bool evaluator::assumptions_hold(assumption_set needed) {
  const std::vector<assumption>& all = kernel_.walk->assumptions().all();
  for (std::size_t n = 0; n < all.size(); ++n) {
    if ((needed >> n & 1) == 0) continue;
    const number value = of(all[n].of);
    if (!value || !range{*value, *value}.lies_in(range_of_bits(all[n].bits, all[n].is_signed))) return false;
  }
  return true;
}

evaluator::number evaluator::of_quantity(quantity_id id) {
  if (id >= known_.size()) known_.resize(table_.quantities());
  if (known_[id].when != now_) {
    known_[id] = {now_, std::nullopt};  // a quantity that depends on itself is not known
    const number value = compute(table_.of(id));
    known_[id].value = value;
  }
  return known_[id].value;
}

evaluator::number evaluator::compute(const quantity& q) {
  switch (q.what) {
    case quantity::kind::block_index: return index_of(place_->block, q.number);
    case quantity::kind::thread_index: return index_of(place_->thread, q.number);
    case quantity::kind::block_size: return index_of(place_->block_size, q.number);
    case quantity::kind::grid_size: return index_of(place_->grid, q.number);
    case quantity::kind::counter: return place_->counters[q.number];
    case quantity::kind::variable: return address_of_(q.number);
    case quantity::kind::parameter: {
      std::uint64_t bits = 0;
      std::memcpy(&bits, place_->parameters + q.number, q.bits / 8);
      return q.values.low >= 0 ? static_cast<__int128>(bits) : sign_extended(bits, q.bits);
    }
    case quantity::kind::node: return of_node(q);
    case quantity::kind::choice:
      if (!guesses_) return std::nullopt;
      for (const expression_id e : q.operands)
        if (const number guess = of(e)) return guess;
      return std::nullopt;
    default: return std::nullopt;
  }
}

evaluator::number evaluator::of_node(const quantity& q) {
  std::uint64_t operands[4] = {0, 0, 0, q.extra};
  for (std::size_t n = 0; n < q.operands.size(); ++n) {
    const number value = of(q.operands[n]);
    if (!value) return std::nullopt;
    operands[n] = low_bits(*value, q.widths[n]);
  }
  const std::uint64_t bits =
      low_bits(static_cast<__int128>(q.function(operands[0], operands[1], operands[2], operands[3])), q.bits);
  return q.bits == 1 ? static_cast<std::int64_t>(bits) : sign_extended(bits, q.bits);
}

}  // namespace hpe::ptx::analysis
