#include "runtime/ptx/analysis/evaluator.h"

#include <algorithm>
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

}  // namespace

std::uint32_t index_of(const dimensions& d, std::size_t axis) { return axis == 0 ? d.x : axis == 1 ? d.y : d.z; }

std::uint64_t low_bits(__int128 value, unsigned count) {
  const auto low = static_cast<std::uint64_t>(value);
  return count >= 64 ? low : low & ((std::uint64_t{1} << count) - 1);
}

std::int64_t result_of(const quantity& node, std::span<const __int128> operands) {
  std::uint64_t given[4] = {0, 0, 0, node.extra};
  for (std::size_t n = 0; n < operands.size(); ++n) given[n] = low_bits(operands[n], node.widths[n]);
  const std::uint64_t bits =
      low_bits(static_cast<__int128>(node.function(given[0], given[1], given[2], given[3])), node.bits);
  return node.bits == 1 ? static_cast<std::int64_t>(bits) : sign_extended(bits, node.bits);
}

__int128 parameter_of(const quantity& q, const std::uint8_t* parameters) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, parameters + q.number, q.bits / 8);
  return q.values.low >= 0 ? static_cast<__int128>(bits) : sign_extended(bits, q.bits);
}

evaluator::evaluator(const kernel_analysis& k, std::function<number(std::uint32_t)> address_of)
    : kernel_(k), table_(k.walk->table()), address_of_(std::move(address_of)), known_(table_.quantities()) {}

void evaluator::go_to(const thread_place& place) {
  place_ = &place;
  ++times_[static_cast<std::size_t>(changes::by_thread)];
  forget();
}

evaluator::changes evaluator::changes_of(quantity_id id) {
  if (id >= changes_.size()) changes_.resize(table_.quantities());
  if (changes_[id]) return *changes_[id];
  changes_[id] = changes::by_counter;  // applies if the quantity depends on itself
  const quantity& q = table_.of(id);
  changes found = changes::never;
  const auto include = [&](const std::vector<expression_id>& list) {
    for (const expression_id e : list)
      for (const term& t : table_.at(e))
        for (std::size_t n = 0; n < t.of.count; ++n) found = std::max(found, changes_of(t.of.factors[n]));
  };
  switch (q.what) {
    case quantity::kind::block_index:
    case quantity::kind::thread_index: found = changes::by_thread; break;
    case quantity::kind::counter: found = changes::by_counter; break;
    case quantity::kind::node:
    case quantity::kind::choice: include(q.operands); break;
    default: break;
  }
  changes_[id] = found;
  return found;
}

const evaluator::folded& evaluator::fold(expression_id e) {
  if (e >= folded_.size()) folded_.resize(table_.size());
  if (folded_[e].is != folded::state::unseen) return folded_[e];
  folded made;
  made.is = folded::state::terms;
  for (const term& t : table_.at(e)) {
    folded::term& to = made.terms.emplace_back();
    to.factor = t.factor;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity_id id = t.of.factors[n];
      if (changes_of(id) != changes::never) {
        to.of.factors[to.of.count++] = id;
        continue;
      }
      const number value = of_quantity(id);
      if (!value) made.is = folded::state::unknown;
      if (made.is != folded::state::terms) break;
      if (*value != static_cast<std::int64_t>(*value) ||
          __builtin_mul_overflow(to.factor, static_cast<std::int64_t>(*value), &to.factor))
        made.is = folded::state::too_large;
    }
    if (made.is == folded::state::unknown) break;
  }
  return folded_[e] = std::move(made);
}

evaluator::number evaluator::of(expression_id e) {
  const folded& f = fold(e);
  if (f.is == folded::state::unknown) return std::nullopt;
  if (f.is == folded::state::too_large) return of_large(e);
  __int128 sum = 0;
  for (const folded::term& t : f.terms) {
    std::int64_t product = t.factor;
    for (std::size_t k = 0; k < t.of.count; ++k) {
      const number factor = of_quantity(t.of.factors[k]);
      if (!factor) return std::nullopt;
      if (*factor != static_cast<std::int64_t>(*factor) ||
          __builtin_mul_overflow(product, static_cast<std::int64_t>(*factor), &product))
        return of_large(e);
    }
    sum += product;
  }
  return sum;
}

evaluator::number evaluator::of_large(expression_id e) {
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
    if (!value || !integer_range{*value, *value}.lies_in(range_of_bits(all[n].bits, all[n].is_signed))) return false;
  }
  return true;
}

evaluator::number evaluator::of_quantity(quantity_id id) {
  if (id >= known_.size()) known_.resize(table_.quantities());
  const std::uint64_t now = times_[static_cast<std::size_t>(changes_of(id))];
  if (known_[id].when != now) {
    known_[id] = {now, std::nullopt};  // the value is unknown if the quantity depends on itself
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
    case quantity::kind::parameter: return parameter_of(q, place_->parameters);
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
  std::array<__int128, 4> operands{};
  for (std::size_t n = 0; n < q.operands.size(); ++n) {
    const number value = of(q.operands[n]);
    if (!value) return std::nullopt;
    operands[n] = *value;
  }
  return result_of(q, std::span(operands).first(q.operands.size()));
}

}  // namespace hpe::ptx::analysis
