// Sums, differences, products and left shifts of registers of w bits become operations on polynomials modulo 2^w. The
// results of other functions become nodes.

#include "runtime/ptx/analysis/value_rules.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/ptx/analysis/node_values.h"
#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx::analysis {

namespace {

assumption_set all_of(const std::vector<value>& values) {
  assumption_set all = 0;
  for (const value& v : values) all |= v.assumes;
  return all;
}

std::vector<expression_id> expressions_of(const std::vector<value>& values) {
  std::vector<expression_id> all;
  for (const value& v : values) all.push_back(v.of);
  return all;
}

bool is_packed(type t) { return t == type::u16x2 || t == type::s16x2; }

constexpr unsigned narrowest_sum = 8;  // in bits; values of narrower registers, such as predicates, are not sums

struct axis_register {
  special_register first;  // the register of axis x; the registers of y and z follow
  quantity::kind kind;
  bool is_index;                                     // true for an index along an axis, false for a size
  const std::array<std::uint32_t, 3>& largest_size;  // by axis
};

constexpr axis_register axis_registers[] = {
    {special_register::tid_x, quantity::kind::thread_index, true, widest_block},
    {special_register::ntid_x, quantity::kind::block_size, false, widest_block},
    {special_register::ctaid_x, quantity::kind::block_index, true, most_blocks},
    {special_register::nctaid_x, quantity::kind::grid_size, false, most_blocks},
};

}  // namespace

unsigned value_rules::result_bits(const instruction& i) const {
  return i.results.empty() || !i.results[0].is_register() ? 64 : bits_of(function_.registers[i.results[0].index]);
}

unsigned value_rules::bits_of_operand(const instruction& i, std::size_t n) const {
  const operand& o = i.sources[n];
  if (o.is_register()) return bits_of(function_.registers[o.index]);
  if (o.what != operand::kind::immediate) return 64;
  const std::string_view shape = form_of(i.op).operands;
  const std::size_t equals = shape.find('=');
  const char letter = equals == std::string_view::npos || equals + 1 + n >= shape.size() ? 's' : shape[equals + 1 + n];
  switch (letter) {
    case 't': return bits_of(i.types[0]);
    case 'w': return bits_of(i.types[0]) * (i.has(modifier::wide) ? 2 : 1);
    case 'p': return 1;
    case 'u': return 32;
    default: return bits_of(i.second_type());
  }
}

bool value_rules::is_integer(const instruction& i) const {
  return std::none_of(std::begin(i.types), std::end(i.types), [](type t) { return is_float(t) || is_packed(t); });
}

value value_rules::of_operand(const operand& o, unsigned bits) {
  value v;
  quantity q;
  switch (o.what) {
    case operand::kind::immediate: {
      std::uint64_t number = o.value ^ (o.negated ? 1 : 0);
      if (bits >= 2 && bits < 64)
        number = static_cast<std::uint64_t>(static_cast<std::int64_t>(number << (64 - bits)) >> (64 - bits));
      v.of = expressions_.constant(static_cast<std::int64_t>(number));
      return v;
    }
    case operand::kind::symbol:
      q.what = quantity::kind::variable;
      q.number = o.index;
      q.values = range_of_bits(64, true);
      v.of = expressions_.single(expressions_.intern(q));
      if (o.value != 0) v.of = *expressions_.sum(v.of, expressions_.constant(static_cast<std::int64_t>(o.value)));
      return v;
    case operand::kind::formal:
      q.what = quantity::kind::formals;
      q.values = range_of_bits(64, true);
      v.of = expressions_.single(expressions_.intern(q));
      if (o.value != 0) v.of = *expressions_.sum(v.of, expressions_.constant(static_cast<std::int64_t>(o.value)));
      return v;
    default:
      // The operand is the address of local memory, of a call's argument, or of a function.
      q.what = quantity::kind::result;
      q.number = static_cast<std::uint32_t>(o.what);
      q.is_thread = o.what == operand::kind::local;
      q.values = range_of_bits(64, true);
      v.of = expressions_.single(expressions_.intern(q, ~0U));
      if (o.value != 0) v.of = *expressions_.sum(v.of, expressions_.constant(static_cast<std::int64_t>(o.value)));
      return v;
  }
}

value value_rules::address(const operand& o, const value& of_register) {
  if (!o.is_register()) return of_operand(o, 64);
  value v = of_register;
  if (const auto all = expressions_.sum(v.of, expressions_.constant(static_cast<std::int64_t>(o.value)))) v.of = *all;
  return v;
}

value value_rules::opaque(const instruction& i, std::uint32_t position, unsigned number,
                          const std::vector<value>& depends, loop_set inside, bool is_data) {
  quantity q;
  q.number = position;
  const operand& result = i.results[number];
  q.bits = static_cast<std::uint8_t>(result.is_register() ? bits_of(function_.registers[result.index]) : 64);
  q.values = range_of_bits(q.bits, q.bits > 1);
  if (i.kind == kind::load && bits_of(i.types[0]) < q.bits)
    q.values = range_of_bits(bits_of(i.types[0]), is_signed(i.types[0]));
  q.is_data = is_data;
  q.varies = inside;
  q.operands = expressions_of(depends);
  q.assumes = all_of(depends);
  value v;
  v.assumes = q.assumes;
  v.of = expressions_.single(expressions_.intern(std::move(q), number));
  return v;
}

// Returns the largest number of threads that a block may have along an axis.
std::int64_t value_rules::most_threads(std::uint32_t axis) const {
  if (function_.required_block[axis] != 0) return function_.required_block[axis];
  return function_.max_threads != 0 ? function_.max_threads : std::numeric_limits<std::int64_t>::max();
}

value value_rules::special(const instruction& i, std::uint32_t position, loop_set inside) {
  const auto which = static_cast<special_register>(i.sources[0].value);
  quantity q;
  q.bits = 32;
  for (const axis_register& a : axis_registers) {
    const auto axis = static_cast<unsigned>(which) - static_cast<unsigned>(a.first);
    if (axis > 2) continue;
    q.what = a.kind;
    q.number = axis;
    std::int64_t largest = a.largest_size[axis];
    if (&a.largest_size == &widest_block) largest = std::min(largest, most_threads(axis));
    q.values = a.is_index ? integer_range{0, largest - 1} : integer_range{1, largest};
    value v;
    v.of = expressions_.reduced(expressions_.single(expressions_.intern(q)), result_bits(i));
    return v;
  }
  using enum special_register;
  const bool of_thread = which == laneid || which == warpid || (which >= lanemask_eq && which <= lanemask_gt);
  const bool of_launch = which == total_smem_size || which == dynamic_smem_size || which == reserved_smem_offset_1;
  q.number = position;
  q.bits = static_cast<std::uint8_t>(result_bits(i));
  q.values = which == laneid || which == warpid ? integer_range{0, 31} : range_of_bits(q.bits, q.bits > 1);
  q.is_thread = of_thread;
  q.is_data = !of_thread && !of_launch;
  if (q.is_data) q.varies = inside;
  value v;
  v.of = expressions_.single(expressions_.intern(std::move(q)));
  return v;
}

std::optional<std::uint32_t> value_rules::parameter_at(const instruction& i, const value& address) const {
  std::int64_t offset = 0;
  bool is_there = false;
  for (const term& t : expressions_.at(address.of)) {
    const bool is_begin =
        t.factor == 1 && t.of.count == 1 && expressions_.of(t.of.factors[0]).what == quantity::kind::formals;
    if (!is_begin && !t.of.is_one()) return std::nullopt;
    is_there |= is_begin;
    if (!is_begin) offset = t.factor;
  }
  const std::int64_t last = std::int64_t{function_.formals_size} - i.vector * bytes_of(i.types[0]);
  return is_there && offset >= 0 && offset <= last ? std::optional(static_cast<std::uint32_t>(offset)) : std::nullopt;
}

value value_rules::parameter(const instruction& i, std::uint32_t offset, unsigned n) {
  quantity q;
  q.what = quantity::kind::parameter;
  q.number = offset + n * bytes_of(i.types[0]);
  const unsigned loaded = bits_of(i.types[0]), wide = bits_of(function_.registers[i.results[n].index]);
  q.bits = static_cast<std::uint8_t>(loaded);
  q.values = range_of_bits(loaded, loaded == wide || is_signed(i.types[0]));
  value v;
  v.of = expressions_.single(
      expressions_.intern(q, loaded << 1 | static_cast<unsigned>(is_signed(i.types[0]) && loaded < wide)));
  return v;
}

value value_rules::unknown(std::uint32_t position, std::uint32_t number, unsigned bits, loop_set inside,
                           const std::vector<value>& depends) {
  quantity q;
  q.operands = expressions_of(depends);
  q.number = position;
  q.bits = static_cast<std::uint8_t>(bits);
  q.values = range_of_bits(bits, bits > 1);
  q.is_data = true;
  q.varies = inside;
  constexpr std::uint32_t after_results = 1000;
  return {expressions_.single(expressions_.intern(std::move(q), after_results + number)), 0};
}

value value_rules::choose(std::uint32_t position, std::uint32_t number, unsigned bits,
                          const std::vector<value>& alternatives, const std::vector<value>& conditions,
                          loop_set inside) {
  quantity q;
  q.what = quantity::kind::choice;
  q.number = position;
  q.bits = static_cast<std::uint8_t>(bits);
  q.values = range_of_bits(bits, bits > 1);
  q.varies = inside;
  q.operands = expressions_of(alternatives);
  q.conditions = expressions_of(conditions);
  q.assumes = all_of(alternatives) | all_of(conditions);
  integer_range hull = expressions_.range_of(alternatives[0].of);
  for (const value& v : alternatives) {
    q.varies = q.varies.with(expressions_.varies(v.of));
    const integer_range one = expressions_.range_of(v.of);
    hull = {std::min(hull.low, one.low), std::max(hull.high, one.high)};
  }
  if (hull.lies_in(q.values)) q.values = hull;
  value v;
  v.assumes = q.assumes;
  v.of = expressions_.single(expressions_.intern(std::move(q), number));
  return v;
}

value value_rules::node(const instruction& i, std::uint32_t position, const std::vector<value>& operands,
                        integer_range values) {
  if (values.low == values.high && values.low >= std::numeric_limits<std::int64_t>::min() &&
      values.high <= std::numeric_limits<std::int64_t>::max())
    return {expressions_.constant(static_cast<std::int64_t>(values.low)), all_of(operands)};
  quantity q;
  q.possible = possible_bits_of_node(expressions_, i, expressions_of(operands), result_bits(i));
  q.what = quantity::kind::node;
  q.number = position;
  q.bits = static_cast<std::uint8_t>(result_bits(i));
  q.values = values;
  q.made_by = &i;
  q.function = i.scalar;
  q.extra = i.sources.size() < 4 ? i.description : 0;
  for (std::size_t n = 0; n < operands.size() && n < q.widths.size(); ++n)
    q.widths[n] = static_cast<std::uint8_t>(bits_of_operand(i, n));
  for (const value& v : operands) q.varies = q.varies.with(expressions_.varies(v.of));
  q.operands = expressions_of(operands);
  q.assumes = all_of(operands);
  value v;
  v.assumes = q.assumes;
  // Instructions of different widths may have the same function, so the widths distinguish their nodes.
  const std::uint32_t widths = static_cast<std::uint32_t>(q.bits) << 8 | q.widths[0];
  v.of = expressions_.single(expressions_.intern(std::move(q), widths));
  return v;
}

std::optional<value> value_rules::combined(const value& a, const value& b, std::int64_t factor_of_b, unsigned bits) {
  const auto sum = expressions_.sum(a.of, b.of, factor_of_b);
  if (!sum) return std::nullopt;
  return value{expressions_.reduced(*sum, bits), a.assumes | b.assumes};
}

std::optional<value> value_rules::multiplied(const value& a, const value& b, unsigned bits) {
  const auto product = expressions_.times(a.of, b.of);
  if (!product) return std::nullopt;
  return value{expressions_.reduced(*product, bits), a.assumes | b.assumes};
}

// Converts the content of a register of `from` bits to an integer in a register of `to` bits.
value value_rules::widened(std::uint32_t position, const value& v, unsigned from, unsigned to, bool is_signed,
                           loop_set inside) {
  if (from >= to) return {expressions_.reduced(v.of, to), v.assumes};
  const expression_id narrow = expressions_.reduced(v.of, from);
  if (const auto c = expressions_.constant_of(narrow); c && !is_signed)
    return {expressions_.constant(
                static_cast<std::int64_t>(static_cast<std::uint64_t>(*c) & (~std::uint64_t{0} >> (64 - from)))),
            v.assumes};
  if (expressions_.range_of(narrow).lies_in(range_of_bits(from, is_signed))) return {narrow, v.assumes};
  if (const auto fits = assumptions_.number_of({narrow, static_cast<std::uint8_t>(from), is_signed}))
    return {narrow, v.assumes | *fits};
  // The table of assumptions is full, so the result is an unknown value.
  return unknown(position, ~v.of, to, inside, {v});
}

value value_rules::convert(const instruction& i, std::uint32_t position, const value& v, loop_set inside) {
  const type to = i.types[0], from = i.second_type();
  const unsigned wide = result_bits(i);
  value result = v;
  result.of = expressions_.reduced(v.of, bits_of(from));
  if (bits_of(to) > bits_of(from))
    result = widened(position, result, bits_of(from), bits_of(to), is_signed(from), inside);
  result.of = expressions_.reduced(result.of, bits_of(to));
  // If the register is wider than the type, also extends the result.
  const bool keeps = bits_of(to) > bits_of(from) && is_signed(from) == is_signed(to);
  if (wide > bits_of(to) && !keeps) result = widened(position, result, bits_of(to), wide, is_signed(to), inside);
  return result;
}

// Computes x & (0xffffffff << s), where x is a multiple of 1 << s. The result is the lower 32 bits of x >> s,
// zero-extended and shifted left by s. Compilers emit this instruction to extend an index to 64 bits and to multiply it
// by the size of an element.
std::optional<value> value_rules::low_word(std::uint32_t position, const std::vector<value>& operands, unsigned bits,
                                           loop_set inside) {
  const auto mask = expressions_.constant_of(operands[1].of);
  if (bits != 64 || !mask || *mask <= 0) return std::nullopt;
  const unsigned shift = static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(*mask)));
  if (*mask >> shift != 0xffffffff || shift > 30) return std::nullopt;
  polynomial shifted = expressions_.at(operands[0].of);
  for (term& t : shifted) {
    if (t.factor % (std::int64_t{1} << shift) != 0) return std::nullopt;
    t.factor >>= shift;
  }
  const value low{expressions_.intern(std::move(shifted)), operands[0].assumes};
  return combined(value{}, widened(position, low, 32, 64, false, inside), std::int64_t{1} << shift, bits);
}

// Computes x & m in two cases. In the first case, m is a constant, and the bits of each term of x are all inside or all
// outside of m. In the second case, m can only be 0 or -1 (from a sign or a condition), so that the result is 0 or x.
std::optional<value> value_rules::masked(std::uint32_t position, const std::vector<value>& operands, unsigned bits,
                                         loop_set inside) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}}) {
    const value &mask = operands[n], &of = operands[1 - n];
    const auto number = expressions_.constant_of(mask.of);
    if (number == -1) return value{of.of, mask.assumes | of.assumes};
    if (number)
      if (const auto kept = expressions_.masked(of.of, static_cast<std::uint64_t>(*number), bits))
        return value{expressions_.reduced(*kept, bits), mask.assumes | of.assumes};
  }
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}}) {
    const value &mask = operands[n], &of = operands[1 - n];
    constexpr std::uint32_t after_merges = ~0U;
    if (expressions_.range_of(mask.of).lies_in({-1, 0}))
      return choose(position, after_merges, bits, {value{}, of}, {mask}, inside);
  }
  return std::nullopt;
}

// Computes bfi: replaces some bits of a number by the low bits of another number. The result is a sum if each term of
// either number lies entirely inside or entirely outside of the replaced bits.
std::optional<value> value_rules::inserted(const std::vector<value>& operands, unsigned bits) {
  const auto at = expressions_.constant_of(operands[2].of), count = expressions_.constant_of(operands[3].of);
  if (!at || !count || *at < 0 || *at >= bits || *count <= 0 || *count > bits) return std::nullopt;
  const std::uint64_t field = bits_below(static_cast<unsigned>(*count));
  const auto others = expressions_.masked(operands[1].of, ~(field << *at), bits);
  // The register drops the bits above its width, so no mask is needed.
  const auto low =
      *at + *count >= bits ? std::optional(operands[0].of) : expressions_.masked(operands[0].of, field, bits);
  if (!others || !low) return std::nullopt;
  return combined({*others, operands[1].assumes}, {*low, operands[0].assumes},
                  static_cast<std::int64_t>(std::uint64_t{1} << *at), bits);
}

std::optional<value> value_rules::affine(const instruction& i, std::uint32_t position,
                                         const std::vector<value>& operands, loop_set inside) {
  const unsigned bits = result_bits(i), narrow = bits_of(i.types[0]);
  const bool is_wide = i.has(modifier::wide);
  const auto constant = [&](std::size_t n) { return expressions_.constant_of(operands[n].of); };
  const auto product = [&]() -> std::optional<value> {
    if (i.has(modifier::hi)) return std::nullopt;
    if (!is_wide) return multiplied(operands[0], operands[1], bits);
    return multiplied(widened(position, operands[0], narrow, bits, is_signed(i.types[0]), inside),
                      widened(position, operands[1], narrow, bits, is_signed(i.types[0]), inside), bits);
  };
  switch (i.op) {
    case opcode::mov: return value{expressions_.reduced(operands[0].of, bits), operands[0].assumes};
    case opcode::cvta: return operands[0];
    case opcode::add: return combined(operands[0], operands[1], 1, bits);
    case opcode::sub: return combined(operands[0], operands[1], -1, bits);
    case opcode::neg: return combined(value{}, operands[0], -1, bits);
    case opcode::not_:  // -1 - x
      if (bits < narrowest_sum) return std::nullopt;
      return combined(value{expressions_.constant(-1), 0}, operands[0], -1, bits);
    case opcode::mul: return product();
    case opcode::mad: {
      const std::optional<value> both = product();
      return both ? combined(*both, operands[2], 1, bits) : std::nullopt;
    }
    case opcode::shl: {
      const auto by = constant(1);
      if (!by || *by < 0 || *by >= bits) return std::nullopt;
      return combined(value{}, operands[0], static_cast<std::int64_t>(std::uint64_t{1} << *by), bits);
    }
    case opcode::or_:
    case opcode::xor_: {
      // If no bit is set in both operands, the result is their sum.
      const std::uint64_t both =
          expressions_.possible_bits(operands[0].of) & expressions_.possible_bits(operands[1].of);
      if (bits < narrowest_sum || (both & bits_below(bits)) != 0) return std::nullopt;
      return combined(operands[0], operands[1], 1, bits);
    }
    case opcode::and_:
      if (bits < narrowest_sum) return std::nullopt;
      if (const auto found = low_word(position, operands, bits, inside)) return found;
      return masked(position, operands, bits, inside);
    case opcode::bfi: return inserted(operands, bits);
    case opcode::cvt: return convert(i, position, operands[0], inside);
    case opcode::unpack:
      if (constant(1) != 0) return std::nullopt;
      return value{expressions_.reduced(operands[0].of, bits), operands[0].assumes};
    case opcode::selp: {
      if (const auto p = constant(2)) return operands[*p != 0 ? 0 : 1];
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

value value_rules::compute(const instruction& i, std::uint32_t position, const std::vector<value>& operands,
                           loop_set inside) {
  if (i.op == opcode::isspacep) return opaque(i, position, 0, operands, inside, false);
  if (i.op != opcode::cvta && (!is_integer(i) || i.has(modifier::sat)))
    return opaque(i, position, 0, operands, inside, false);
  if (i.op == opcode::cvta && i.has(modifier::to) && i.has(modifier::global))
    if (const auto q = expressions_.single_of(operands[0].of);
        q && expressions_.of(*q).what == quantity::kind::parameter)
      expressions_.mark_pointer(*q);
  if (const std::optional<value> found = affine(i, position, operands, inside)) return *found;
  if (i.scalar == nullptr || i.op == opcode::mov || i.op == opcode::cvta)
    return opaque(i, position, 0, operands, inside, false);
  std::vector<integer_range> ranges;
  for (const value& v : operands) ranges.push_back(expressions_.range_of(v.of));
  return node(i, position, operands, values_of_node(i, ranges, result_bits(i)));
}

}  // namespace hpe::ptx::analysis
