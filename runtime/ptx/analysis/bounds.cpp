#include "runtime/ptx/analysis/bounds.h"

#include <algorithm>

#include "runtime/ptx/analysis/node_values.h"

namespace hpe::ptx::analysis {

namespace {

constexpr integer_range that(__int128 number) { return {number, number}; }

bool is_single(const integer_range& r) { return r.low == r.high; }

integer_range in_both(const integer_range& a, const integer_range& b) {
  const integer_range both{std::max(a.low, b.low), std::min(a.high, b.high)};
  // If the intersection is empty, no thread computes this value, so any range is correct.
  return both.low <= both.high ? both : a;
}

}  // namespace

bounds::bounds(const kernel_analysis& k, const dimensions& grid, const dimensions& block_size,
               const std::uint8_t* parameters)
    : kernel_(k),
      table_(k.walk->table()),
      grid_(grid),
      block_size_(block_size),
      parameters_(parameters),
      counters_(k.walk->flow().loops().size()),
      known_(table_.quantities()) {}

void bounds::go_to(const dimensions& first, const dimensions& last) {
  first_ = first;
  last_ = last;
  std::fill(counters_.begin(), counters_.end(), integer_range{0, range_of_bits(63, false).high});
  ++now_;
}

void bounds::limit(std::uint32_t loop, std::int64_t last) {
  counters_[loop].high = last;
  ++now_;
}

integer_range bounds::of(expression_id e) {
  integer_range all;
  for (const term& t : table_.at(e)) {
    integer_range one = that(t.factor);
    for (std::size_t n = 0; n < t.of.count; ++n) one = product_of(one, of_quantity(t.of.factors[n]));
    all = sum_of(all, one);
  }
  return all;
}

integer_range bounds::of_register(expression_id e, unsigned bits, bool is_signed) {
  const integer_range number = of(e), all = range_of_bits(bits, is_signed);
  if (number.lies_in(all)) return number;
  if (!is_single(number)) return all;
  const std::uint64_t low = low_bits(number.low, bits);
  const bool is_negative = is_signed && bits > 1 && (low >> (bits - 1) & 1) != 0;
  return that(static_cast<__int128>(low) - (is_negative ? static_cast<__int128>(1) << bits : 0));
}

std::optional<bounds::line> bounds::line_of(expression_id e, std::uint32_t loop) {
  line found;
  for (const term& t : table_.at(e)) {
    integer_range one = that(t.factor);
    unsigned counters = 0;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity& q = table_.of(t.of.factors[n]);
      if (q.what == quantity::kind::counter && q.number == loop) {
        ++counters;
        continue;
      }
      if (q.varies.has(loop)) return std::nullopt;
      one = product_of(one, of_quantity(t.of.factors[n]));
    }
    if (counters > 1 || (counters == 1 && !is_single(one))) return std::nullopt;
    if (counters == 1)
      found.step += one.low;
    else
      found.start = sum_of(found.start, one);
  }
  return found;
}

bool bounds::assumptions_hold(assumption_set needed) {
  const std::vector<assumption>& all = kernel_.walk->assumptions().all();
  for (std::size_t n = 0; n < all.size(); ++n)
    if ((needed >> n & 1) != 0 && !of(all[n].of).lies_in(range_of_bits(all[n].bits, all[n].is_signed))) return false;
  return true;
}

bool bounds::never_holds(const comparison& c) {
  if (!assumptions_hold(c.assumes)) return false;
  const integer_range left = of_register(c.left, c.bits, c.is_signed),
                      right = of_register(c.right, c.bits, c.is_signed);
  switch (c.how) {
    case relation::equal: return left.high < right.low || left.low > right.high;
    case relation::unequal: return is_single(left) && is_single(right) && left.low == right.low;
    case relation::less: return left.low >= right.high;
    case relation::less_or_equal: return left.low > right.high;
    case relation::greater: return left.high <= right.low;
    default: return left.high < right.low;
  }
}

const integer_range& bounds::of_quantity(quantity_id id) {
  if (known_[id].when == now_) return known_[id].values;
  const quantity& q = table_.of(id);
  known_[id] = {now_, q.values};  // the range to use if the computation of this quantity needs the quantity itself
  const integer_range found = compute(q);
  known_[id].values = found;
  return known_[id].values;
}

integer_range bounds::compute(const quantity& q) {
  switch (q.what) {
    case quantity::kind::block_index: return {index_of(first_, q.number), index_of(last_, q.number)};
    case quantity::kind::thread_index: return {0, index_of(block_size_, q.number) - 1};
    case quantity::kind::block_size: return that(index_of(block_size_, q.number));
    case quantity::kind::grid_size: return that(index_of(grid_, q.number));
    case quantity::kind::counter: return counters_[q.number];
    case quantity::kind::parameter: return that(parameter_of(q, parameters_));
    case quantity::kind::node: return of_node(q);
    case quantity::kind::choice: {
      integer_range all = of_register(q.operands[0], q.bits, q.bits > 1);
      for (const expression_id e : q.operands) all = hull_of(all, of_register(e, q.bits, q.bits > 1));
      return in_both(all, q.values);
    }
    default: return q.values;
  }
}

integer_range bounds::of_node(const quantity& q) {
  std::vector<integer_range> operands;
  for (std::size_t n = 0; n < q.operands.size(); ++n)
    operands.push_back(of_register(q.operands[n], q.widths[n], q.widths[n] > 1));
  if (std::ranges::all_of(operands, is_single)) {
    std::vector<__int128> numbers;
    for (const integer_range& r : operands) numbers.push_back(r.low);
    return that(result_of(q, numbers));
  }
  return in_both(values_of_node(*q.made_by, operands, q.bits), q.values);
}

}  // namespace hpe::ptx::analysis
