#include "runtime/ptx/analysis/expression.h"

#include <algorithm>
#include <bit>

namespace hpe::ptx::analysis {

namespace {

constexpr __int128 largest = static_cast<__int128>(1) << 100;

__int128 saturated(__int128 value) { return std::clamp(value, -largest, largest); }

// Returns the product of two numbers. If the product does not fit, returns a saturated bound.
__int128 product_of(__int128 a, __int128 b) {
  __int128 result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return saturated(result);
  return (a < 0) == (b < 0) ? largest : -largest;
}

std::optional<product> joined(const product& a, const product& b) {
  if (a.count + b.count > static_cast<int>(product::most)) return std::nullopt;
  product result;
  result.count = static_cast<std::uint8_t>(a.count + b.count);
  std::merge(a.factors.begin(), a.factors.begin() + a.count, b.factors.begin(), b.factors.begin() + b.count,
             result.factors.begin());
  return result;
}

std::int64_t wrapped_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Sorts the terms of a polynomial, and combines terms with the same product.
void normalise(polynomial& p) {
  std::sort(p.begin(), p.end(), [](const term& a, const term& b) { return a.of < b.of; });
  std::size_t kept = 0;
  for (std::size_t n = 0; n < p.size();) {
    term sum = p[n++];
    for (; n < p.size() && p[n].of == sum.of; ++n) sum.factor = wrapped_sum(sum.factor, p[n].factor);
    if (sum.factor != 0) p[kept++] = sum;
  }
  p.resize(kept);
}

// Returns the bits that may be set in a number of this range.
std::uint64_t bits_within(const integer_range& r) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  if (r.low < 0 || r.high > static_cast<__int128>(all)) return all;
  const auto high = static_cast<std::uint64_t>(r.high);
  return high == 0 ? 0 : all >> std::countl_zero(high);
}

// Returns the bits that may be set in the sum of two numbers with these bits. If a bit may be set in both numbers, all
// higher bits may be set in the sum.
std::uint64_t bits_of_sum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t both = a & b;
  return both == 0 ? a | b : a | b | ~((both & (~both + 1)) - 1);
}

}  // namespace

integer_range range_of_bits(unsigned bits, bool is_signed) {
  const __int128 one = 1;
  if (is_signed) return {-(one << (bits - 1)), (one << (bits - 1)) - 1};
  return {0, (one << bits) - 1};
}

integer_range hull_of(const integer_range& a, const integer_range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

integer_range sum_of(const integer_range& a, const integer_range& b) {
  return {saturated(a.low + b.low), saturated(a.high + b.high)};
}

integer_range product_of(const integer_range& a, const integer_range& b) {
  const __int128 all[] = {product_of(a.low, b.low), product_of(a.low, b.high), product_of(a.high, b.low),
                          product_of(a.high, b.high)};
  return {*std::min_element(std::begin(all), std::end(all)), *std::max_element(std::begin(all), std::end(all))};
}

expressions::expressions() { static_cast<void>(intern(polynomial{})); }

quantity_id expressions::intern(quantity q, std::uint32_t distinction) {
  // Equal nodes and choices are one quantity, even if different instructions compute them. The instruction identifies a
  // result.
  const bool is_function = q.what == quantity::kind::node || q.what == quantity::kind::choice;
  const bool is_recurrence = q.what == quantity::kind::recurrence;
  identity key{q.what,
               q.what == quantity::kind::node ? 0 : q.number,
               distinction,
               q.function,
               q.extra,
               is_function ? q.operands : std::vector<expression_id>{},
               is_function ? q.conditions : std::vector<expression_id>{}};
  const auto [found, is_new] =
      known_quantities_.try_emplace(std::move(key), static_cast<quantity_id>(quantities_.size()));
  if (is_new) {
    quantities_.push_back(std::move(q));
  } else if (!is_function && !is_recurrence) {
    quantities_[found->second].operands = std::move(q.operands);
    quantities_[found->second].assumes |= q.assumes;
    quantities_[found->second].varies = quantities_[found->second].varies.with(q.varies);
  } else {
    quantities_[found->second].assumes |= q.assumes;
  }
  return found->second;
}

expression_id expressions::intern(polynomial p) {
  normalise(p);
  const auto [found, is_new] = known_polynomials_.try_emplace(p, static_cast<expression_id>(polynomials_.size()));
  if (is_new) polynomials_.push_back(std::move(p));
  return found->second;
}

expression_id expressions::constant(std::int64_t value) {
  return value == 0 ? 0 : intern(polynomial{{product{}, value}});
}

expression_id expressions::single(quantity_id q) {
  product one;
  one.factors[0] = q;
  one.count = 1;
  return intern(polynomial{{one, 1}});
}

std::optional<expression_id> expressions::sum(expression_id a, expression_id b, std::int64_t factor_of_b) {
  polynomial result = at(a);
  for (const term& t : at(b)) result.push_back({t.of, wrapped_product(t.factor, factor_of_b)});
  normalise(result);
  if (result.size() > most_terms) return std::nullopt;
  return intern(std::move(result));
}

std::optional<expression_id> expressions::times(expression_id a, expression_id b) {
  polynomial result;
  if (at(a).size() * at(b).size() > most_terms * most_terms) return std::nullopt;
  for (const term& s : at(a)) {
    for (const term& t : at(b)) {
      const std::optional<product> both = joined(s.of, t.of);
      if (!both) return std::nullopt;
      result.push_back({*both, wrapped_product(s.factor, t.factor)});
    }
  }
  normalise(result);
  if (result.size() > most_terms) return std::nullopt;
  return intern(std::move(result));
}

expression_id expressions::reduced(expression_id e, unsigned bits) {
  if (bits >= 64 || bits < 2) return e;  // predicates have 1 bit and are not reduced
  polynomial result = at(e);
  const unsigned cut = 64 - bits;
  for (term& t : result) t.factor = static_cast<std::int64_t>(static_cast<std::uint64_t>(t.factor) << cut) >> cut;
  return intern(std::move(result));
}

std::optional<expression_id> expressions::replaced(expression_id e, quantity_id q, expression_id by) {
  expression_id result = 0;
  const polynomial from = at(e);
  for (const term& t : from) {
    term rest{{}, t.factor};
    unsigned times_q = 0;
    for (std::size_t n = 0; n < t.of.count; ++n) {
      if (t.of.factors[n] == q) {
        ++times_q;
      } else {
        rest.of.factors[rest.of.count++] = t.of.factors[n];
      }
    }
    std::optional<expression_id> scaled = intern(polynomial{rest});
    for (; scaled && times_q > 0; --times_q) scaled = times(*scaled, by);
    if (!scaled) return std::nullopt;
    const std::optional<expression_id> all = sum(result, *scaled);
    if (!all) return std::nullopt;
    result = *all;
  }
  return result;
}

std::optional<std::int64_t> expressions::constant_of(expression_id e) const {
  const polynomial& p = at(e);
  if (p.empty()) return 0;
  if (p.size() == 1 && p[0].of.is_one()) return p[0].factor;
  return std::nullopt;
}

std::optional<quantity_id> expressions::single_of(expression_id e) const {
  const polynomial& p = at(e);
  if (p.size() != 1 || p[0].of.count != 1 || p[0].factor != 1) return std::nullopt;
  return p[0].of.factors[0];
}

integer_range expressions::range_of(expression_id e) const {
  integer_range all;
  for (const term& t : at(e)) {
    integer_range one{t.factor, t.factor};
    for (std::size_t n = 0; n < t.of.count; ++n) one = product_of(one, of(t.of.factors[n]).values);
    all = sum_of(all, one);
  }
  return all;
}

std::uint64_t expressions::possible_bits(const term& t) const {
  if (t.of.is_one()) return static_cast<std::uint64_t>(t.factor);
  const auto factor = static_cast<std::uint64_t>(t.factor);
  unsigned zeros = static_cast<unsigned>(std::countr_zero(factor));
  integer_range values{t.factor, t.factor};
  for (std::size_t n = 0; n < t.of.count; ++n) {
    const quantity& q = of(t.of.factors[n]);
    zeros += static_cast<unsigned>(std::countr_zero(q.possible & bits_within(q.values)));
    values = product_of(values, q.values);
  }
  std::uint64_t found = zeros >= 64 ? 0 : (~std::uint64_t{0} << zeros) & bits_within(values);
  if (t.of.count == 1 && std::has_single_bit(factor)) {
    const quantity& q = of(t.of.factors[0]);
    found &= (q.possible & bits_within(q.values)) << std::countr_zero(factor);
  }
  return found;
}

std::uint64_t expressions::possible_bits(expression_id e) const {
  std::uint64_t all = 0;
  for (const term& t : at(e)) all = bits_of_sum(all, possible_bits(t));
  return all & bits_within(range_of(e));
}

std::optional<expression_id> expressions::masked(expression_id e, std::uint64_t mask, unsigned bits) {
  const std::uint64_t width = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  polynomial kept;
  std::uint64_t all = 0;
  for (term t : at(e)) {
    const std::uint64_t own = possible_bits(t) & width;
    if ((own & all) != 0) return std::nullopt;
    all |= own;
    if (t.of.is_one())
      t.factor = static_cast<std::int64_t>(static_cast<std::uint64_t>(t.factor) & mask);
    else if ((own & mask) != 0 && (own & ~mask) != 0)
      return std::nullopt;
    if ((own & mask) != 0) kept.push_back(t);
  }
  return intern(std::move(kept));
}

loop_set expressions::varies(expression_id e) const {
  loop_set all;
  for (const term& t : at(e))
    for (std::size_t n = 0; n < t.of.count; ++n) all = all.with(of(t.of.factors[n]).varies);
  return all;
}

assumption_set expressions::assumes(expression_id e) const {
  assumption_set all = 0;
  for (const term& t : at(e))
    for (std::size_t n = 0; n < t.of.count; ++n) all |= of(t.of.factors[n]).assumes;
  return all;
}

std::optional<assumption_set> assumption_table::number_of(const assumption& a) {
  constexpr std::size_t most = 64;
  auto found = std::find(all_.begin(), all_.end(), a);
  if (found == all_.end()) {
    if (all_.size() == most) return std::nullopt;
    found = all_.insert(all_.end(), a);
  }
  return assumption_set{1} << (found - all_.begin());
}

}  // namespace hpe::ptx::analysis
