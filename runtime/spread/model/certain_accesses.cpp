// Conditions. An access in nested loops happens in iteration (k1, k2, ...) if a thread reaches the header of the
// outermost loop, repeats this loop k1 times, then reaches the header of the next loop, and so on. At each branch at
// which the thread could leave this way, a comparison must be true or false: a need (add_ways, add_repetition). If all
// needs are met, the access happens. The access may also happen otherwise: of `if (a || b)`, hpe follows only one of
// the two ways.
//
// Bytes. hpe writes the needs and the address as sums over variables, each of which has a range: block and thread
// indices, and loop counters. If all sums contain two variables in the same proportion, like
// blockIdx.x * blockDim.x + threadIdx.x, and the first has all its values, hpe replaces the two by one variable. Then
// each need must limit a single variable, or be true for all values; otherwise the access is not certain.
#include "runtime/spread/model/certain_accesses.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

bool may_end_threads(const kernel_analysis& k) {
  return std::ranges::any_of(k.kernel->code, [](const ptx::instruction& i) { return i.kind == ptx::kind::call; });
}

}  // namespace

certain_accesses::certain_accesses(const kernel_model& kernel) : kernel_(kernel) {
  const kernel_analysis& k = kernel.analysis();
  if (!k.left_out.empty() || !k.walk->is_complete() || k.walk->flow().is_irregular() || may_end_threads(k)) return;
  std::uint32_t number = 0;
  for (const access& a : k.accesses) add(a, ++number);
}

void certain_accesses::add(const access& a, std::uint32_t number) {
  if (a.inside != nullptr || a.bytes == 0 || a.forms.size() != 1) return;
  const auto pointer = kernel_.pointer_of(a.forms.front());
  if (!pointer) return;
  kernel_walk& walk = *kernel_.analysis().walk;
  // If the address is chosen among several, and only one of them is in global memory, the form describes only this one.
  if (walk.address_of(a.position, a.operand).of != a.forms.front().whole) return;
  const flow_graph& flow = walk.flow();
  const std::uint32_t block = flow.block_at(a.position);
  known_access made{&a, number, *pointer, {}, {}};
  for (std::uint32_t l = 0; l < flow.loops().size(); ++l)
    if (flow.blocks()[block].loops.has(l)) made.loops.push_back(l);
  std::ranges::sort(made.loops, {}, [&](std::uint32_t l) { return flow.loops()[l].depth; });
  std::uint32_t from = 0;
  std::optional<std::uint32_t> inside;
  for (const std::uint32_t loop : made.loops) {
    if (!add_ways(made, from, flow.loops()[loop].header, inside) || !add_repetition(made, loop)) return;
    from = flow.loops()[loop].header;
    inside = loop;
  }
  if (!add_ways(made, from, block, inside)) return;
  if (const auto guard = walk.guard_of(a.position)) {
    const auto all = equivalents_of(walk.table(), {&*guard, 1});
    if (!all) return;
    for (const comparison& c : *all) made.needs.push_back({c});
  }
  known_.push_back(std::move(made));
}

// Adds the needs under which a thread that begins block `from` reaches block `target` without another iteration of the
// loop `inside`.
bool certain_accesses::add_ways(known_access& to, std::uint32_t from, std::uint32_t target,
                                std::optional<std::uint32_t> inside) const {
  if (from == target) return true;
  const flow_graph& flow = kernel_.analysis().walk->flow();
  std::vector<bool> good(flow.blocks().size());
  std::vector<std::uint32_t> pending{target};
  good[target] = true;
  while (!pending.empty()) {
    const std::uint32_t b = pending.back();
    pending.pop_back();
    if (b == from) continue;
    for (const std::uint32_t before : flow.blocks()[b].predecessors) {
      const flow_block& other = flow.blocks()[before];
      // The way does not go through the target.
      if (good[before] || !other.is_reachable || flow.dominates(target, before)) continue;
      if (inside && !other.loops.has(*inside)) continue;
      good[before] = true;
      pending.push_back(before);
    }
  }
  for (std::uint32_t b = 0; b < good.size(); ++b)
    if (good[b] && b != target && !add_stay(to, b, good, std::nullopt)) return false;
  return true;
}

// Adds the needs under which a thread repeats the loop after each iteration before the iteration of the access.
bool certain_accesses::add_repetition(known_access& to, std::uint32_t loop) const {
  const flow_graph& flow = kernel_.analysis().walk->flow();
  std::vector<bool> good(flow.blocks().size());
  for (const std::uint32_t b : flow.loops()[loop].blocks) good[b] = true;
  return std::ranges::all_of(flow.loops()[loop].blocks, [&](std::uint32_t b) { return add_stay(to, b, good, loop); });
}

// Adds the needs under which a thread goes from the end of this block to a good block.
bool certain_accesses::add_stay(known_access& to, std::uint32_t block, const std::vector<bool>& good,
                                std::optional<std::uint32_t> earlier_in) const {
  kernel_walk& walk = *kernel_.analysis().walk;
  const flow_graph& flow = walk.flow();
  const flow_block& here = flow.blocks()[block];
  const ptx::instruction& last = kernel_.analysis().kernel->code[here.last - 1];
  const bool all_good = std::ranges::all_of(here.successors, [&](std::uint32_t b) { return good[b]; });
  const std::size_t end = kernel_.analysis().kernel->code.size();
  const bool ends = last.kind == ptx::kind::ret || last.kind == ptx::kind::exit || last.kind == ptx::kind::trap ||
                    std::ranges::find(last.targets, end) != last.targets.end();
  if (all_good && !ends) return !here.successors.empty();
  const auto guard = walk.guard_of(here.last - 1);
  if (!guard || last.kind == ptx::kind::branch_table) return false;
  condition wanted = *guard;
  if (ends) {
    if (!all_good || here.successors.empty()) return false;
    wanted.holds = false;
  } else {
    if (here.successors.size() != 2 || last.targets.empty()) return false;
    wanted.holds = good[flow.block_at(last.targets[0])];
    if (!wanted.holds && !good[here.successors[0]] && !good[here.successors[1]]) return false;
  }
  const auto all = equivalents_of(walk.table(), {&wanted, 1});
  if (!all) return false;
  for (const comparison& c : *all) to.needs.push_back({c, earlier_in});
  return true;
}

bool certain_accesses::may_follow_write(std::uint32_t number, std::uint32_t written) const {
  const kernel_analysis& k = kernel_.analysis();
  if (!k.walk->flow().loops().empty()) return true;
  const std::uint32_t position = k.accesses[number - 1].position;
  return std::ranges::any_of(k.accesses, [&](const access& a) {
    if (a.what == access_kind::read) return false;
    const bool precedes = a.inside != nullptr || a.position < position;
    return precedes && (a.forms.empty() || std::ranges::any_of(a.forms, [&](const address_form& f) {
                          const auto pointer = kernel_.pointer_of(f);
                          return !pointer || *pointer == written;
                        }));
  });
}

/// Solves the accesses of some blocks of one launch.
class certain_accesses::launch_solver {
 public:
  launch_solver(const kernel_model& kernel, const launch& l, const subgrid& blocks)
      : kernel_(kernel), launch_(l), blocks_(blocks), ranges_(kernel, l), most_(ranges_.counters.size()) {
    ranges_.go_to(blocks);
    for (const std::uint32_t loop : kernel.counts().order()) {
      most_[loop] = ranges_.most_of(loop);
      if (most_[loop]) ranges_.bounds.limit(loop, *most_[loop]);
    }
  }

  /// Whether the latest result omits ranges because the access has too many.
  [[nodiscard]] bool is_partial() const { return is_partial_; }
  /// All bytes of the latest result, as a box at the first address; nullopt if they are no box.
  [[nodiscard]] const std::optional<box>& shape() const { return shape_; }
  /// Returns the ranges of an access; nothing if they are not certain.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> solve(const known_access& a) {
    variables_.clear();
    forms_.clear();
    for (std::uint32_t axis = 0; axis < launch_.grid.size(); ++axis) {
      variables_.push_back({quantity::kind::thread_index, axis, launch_.block[axis]});
      variables_.push_back(
          {quantity::kind::block_index, axis, launch_.grid[axis], blocks_.first[axis], blocks_.last()[axis]});
    }
    for (const std::uint32_t loop : a.loops) {
      if (!most_[loop]) return {};
      if (*most_[loop] < 0) return {};  // the loop does not run
      variables_.push_back({quantity::kind::counter, loop, static_cast<__int128>(*most_[loop]) + 1});
    }
    const address_form& form = a.of->forms.front();
    const auto address = linear(form.whole);
    if (!address || !ranges_.bounds.assumptions_hold(form.assumes)) return {};
    forms_.push_back(*address);  // the needs follow
    for (const need& each : a.needs)
      if (!add(each)) return {};
    drop_implied();
    while (merge_some()) {
    }
    for (std::size_t n = 1; n < forms_.size(); ++n) limit_single(forms_[n]);
    for (const variable& v : variables_)
      if (v.first > v.last) return {};  // no thread makes the access
    for (std::size_t n = 1; n < forms_.size(); ++n)
      if (range_of(forms_[n]).low < 0) return {};
    return ranges_of(a.of->bytes);
  }

 private:
  /// Its values are 0 <= value < count in the whole launch, and first to last in the accesses.
  struct variable {
    quantity::kind what = quantity::kind::thread_index;
    std::uint32_t number = 0;
    __int128 count = 1;
    __int128 first = 0, last = count - 1;
    [[nodiscard]] bool has_all_values() const { return first == 0 && last == count - 1; }
  };
  /// The number constant + sum of factors[v] * variable v. For a need, this number must be at least 0.
  struct sum {
    __int128 constant = 0;
    std::vector<__int128> factors;
  };
  // Larger numbers are not certain, so that no computation overflows.
  static constexpr __int128 too_large = __int128{1} << 100;

  static bool is_small(__int128 n) { return n < too_large && n > -too_large; }

  [[nodiscard]] std::optional<std::size_t> variable_of(const quantity& q) const {
    const auto found =
        std::ranges::find_if(variables_, [&](const variable& v) { return v.what == q.what && v.number == q.number; });
    if (found == variables_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - variables_.begin());
  }

  // Returns the expression as a sum over the variables; nothing if it depends on anything else.
  [[nodiscard]] std::optional<sum> linear(expression_id e) {
    const expressions& table = kernel_.analysis().walk->table();
    sum result{0, std::vector<__int128>(variables_.size())};
    for (const term& t : table.at(e)) {
      __int128 factor = t.factor;
      std::optional<std::size_t> by;
      for (std::size_t n = 0; n < t.of.count; ++n) {
        const quantity& q = table.of(t.of.factors[n]);
        if (const auto v = variable_of(q)) {
          if (by) return std::nullopt;
          by = v;
          continue;
        }
        const auto value = value_of(t.of.factors[n]);
        if (!value || !is_small(*value) || !is_small(factor)) return std::nullopt;
        if (__builtin_mul_overflow(factor, *value, &factor) || !is_small(factor)) return std::nullopt;
      }
      __int128& to = by ? result.factors[*by] : result.constant;
      to += factor;
      if (!is_small(to)) return std::nullopt;
    }
    return result;
  }

  // Returns the value of a quantity that is the same in the whole launch.
  [[nodiscard]] evaluator::number value_of(quantity_id id) {
    const kernel_analysis& k = kernel_.analysis();
    dependence d = k.known->of_quantity(id, 0);
    if (!d.is_uniform() || !k.walk->table().of(id).varies.empty()) return std::nullopt;
    if (!ranges_.bounds.assumptions_hold(k.walk->table().of(id).assumes)) return std::nullopt;
    return ranges_.numbers.of_quantity(id);
  }

  [[nodiscard]] integer_range range_of(const sum& s) const {
    integer_range all{s.constant, s.constant};
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      const __int128 a = s.factors[v] * variables_[v].first, b = s.factors[v] * variables_[v].last;
      all.low += std::min(a, b);
      all.high += std::max(a, b);
    }
    return all;
  }

  static sum difference(const sum& a, const sum& b, __int128 more) {
    sum result{a.constant - b.constant + more, a.factors};
    for (std::size_t v = 0; v < result.factors.size(); ++v) result.factors[v] -= b.factors[v];
    return result;
  }

  // Adds the sums that must be at least 0 for the comparison to be true.
  bool add(const need& n) {
    const comparison& c = n.what;
    auto left = linear(c.left), right = linear(c.right);
    if (!left || !right || !ranges_.bounds.assumptions_hold(c.assumes)) return false;
    std::vector<sum> made;
    for (sum* side : {&*left, &*right})
      if (!fits(*side, c, made)) return false;
    const integer_range by = range_of(difference(*left, *right, 0));
    switch (c.how) {
      case relation::equal:
        made.push_back(difference(*left, *right, 0));
        made.push_back(difference(*right, *left, 0));
        break;
      case relation::unequal:
        if (by.low > 0 || by.high < 0) break;
        if (by.low == 0) {
          made.push_back(difference(*left, *right, -1));
        } else if (by.high == 0) {
          made.push_back(difference(*right, *left, -1));
        } else {
          return false;
        }
        break;
      case relation::less: made.push_back(difference(*right, *left, -1)); break;
      case relation::less_or_equal: made.push_back(difference(*right, *left, 0)); break;
      case relation::greater: made.push_back(difference(*left, *right, -1)); break;
      case relation::greater_or_equal: made.push_back(difference(*left, *right, 0)); break;
    }
    for (sum& each : made) {
      if (n.earlier_in) shift_to_earlier(each, *n.earlier_in);
      forms_.push_back(std::move(each));
    }
    return true;
  }

  // Returns whether a side of a comparison equals the number in its register. Adds the needs for this.
  bool fits(sum& side, const comparison& c, std::vector<sum>& needs) {
    const integer_range limits = range_of_bits(c.bits, c.is_signed);
    integer_range all = range_of(side);
    if (!c.is_signed && all.low == all.high && all.low < 0) {  // a number that the analysis reads as signed
      side.constant += static_cast<__int128>(1) << c.bits;
      all = range_of(side);
    }
    if (!c.is_signed && all.low < 0) {
      needs.push_back(side);
      all.low = 0;
    }
    return all.lies_in(limits);
  }

  // The need must be met in all earlier iterations of the loop. Replaces it by a need for one of these iterations, the
  // first or the last, in which the sum is smallest.
  void shift_to_earlier(sum& need, std::uint32_t loop) {
    const auto found = std::ranges::find_if(
        variables_, [&](const variable& v) { return v.what == quantity::kind::counter && v.number == loop; });
    __int128& factor = need.factors[static_cast<std::size_t>(found - variables_.begin())];
    if (factor >= 0) {
      factor = 0;
    } else {
      need.constant -= factor;
    }
  }

  // Removes each need that follows from another one: the test before a loop over the grid follows from the loop's test.
  void drop_implied() {
    for (std::size_t n = 1; n < forms_.size();) {
      bool follows = range_of(forms_[n]).low >= 0;
      for (std::size_t other = 1; other < forms_.size() && !follows; ++other)
        follows = other != n && range_of(difference(forms_[n], forms_[other], 0)).low >= 0;
      if (follows)
        forms_.erase(forms_.begin() + static_cast<std::ptrdiff_t>(n));
      else
        ++n;
    }
  }

  // Replaces two variables x and y by one, if in all sums the factor of y is the factor of x times the count of x.
  bool merge_some() {
    for (std::size_t x = 0; x < variables_.size(); ++x) {
      for (std::size_t y = 0; y < variables_.size(); ++y) {
        if (x == y || variables_[x].count == 1 || variables_[y].count == 1 || !variables_[x].has_all_values()) continue;
        const __int128 count = variables_[x].count;
        if (!is_small(count * variables_[y].count)) continue;
        const auto fits = [&](const sum& s) { return s.factors[y] == count * s.factors[x]; };
        const auto is_used = [&](const sum& s) { return s.factors[x] != 0; };
        if (!std::ranges::all_of(forms_, fits) || std::ranges::none_of(forms_, is_used)) continue;
        variables_[x].count *= variables_[y].count;
        variables_[x].first = variables_[y].first * count;
        variables_[x].last = variables_[y].last * count + count - 1;
        variables_[y] = {variables_[y].what, variables_[y].number, 1};
        for (sum& s : forms_) s.factors[y] = 0;
        return true;
      }
    }
    return false;
  }

  // If a need contains only one variable that has several values, limits the range of this variable.
  void limit_single(const sum& need) {
    std::optional<std::size_t> only;
    __int128 constant = need.constant;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      if (variables_[v].first == variables_[v].last) {
        constant += need.factors[v] * variables_[v].first;
      } else if (need.factors[v] != 0) {
        if (only) return;
        only = v;
      }
    }
    if (!only) return;
    variable& v = variables_[*only];
    const __int128 factor = need.factors[*only];
    const auto floor = [](__int128 a, __int128 b) { return a / b - (a % b < 0 ? 1 : 0); };  // b > 0
    if (factor > 0) {
      v.first = std::max(v.first, -floor(constant, factor));
    } else {
      v.last = std::min(v.last, floor(constant, -factor));
    }
  }

  // Returns the addresses of an access of `bytes` bytes.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_of(std::uint32_t bytes) {
    struct step {
      __int128 distance, count;
    };
    const sum& address = forms_.front();
    const integer_range all = range_of(address);
    if (all.low < 0 || all.high + bytes > (static_cast<__int128>(1) << 64)) return {};
    std::vector<step> steps;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      const __int128 distance = address.factors[v] < 0 ? -address.factors[v] : address.factors[v];
      if (distance != 0 && variables_[v].first < variables_[v].last)
        steps.push_back({distance, variables_[v].last - variables_[v].first + 1});
    }
    std::ranges::sort(steps, {}, &step::distance);
    __int128 run = bytes;
    std::vector<step> outer;
    for (const step& each : steps) {
      if (outer.empty() && each.distance <= run) {
        run += each.distance * (each.count - 1);
      } else {
        outer.push_back(each);
      }
    }
    shape_.reset();
    if (outer.size() <= 2) {
      box made{{static_cast<std::size_t>(run)}, {}};
      if (!outer.empty()) {
        made.extent.rows = static_cast<std::size_t>(outer[0].count);
        made.strides.row = static_cast<std::size_t>(outer[0].distance);
      }
      const __int128 plane = made.span();
      if (outer.size() == 2) {
        made.extent.planes = static_cast<std::size_t>(outer[1].count);
        made.strides.plane = static_cast<std::size_t>(outer[1].distance);
      }
      if (outer.size() < 2 || plane <= outer[1].distance) shape_ = made;
    }
    std::vector<__int128> begins{all.low};
    is_partial_ = false;
    auto room = static_cast<double>(most_ranges);
    for (std::size_t s = 0; s < outer.size(); ++s) {
      const step& each = outer[s];
      const auto fair = static_cast<__int128>(std::pow(room, 1.0 / static_cast<double>(outer.size() - s)));
      const __int128 count = std::min(each.count, std::max<__int128>(fair, 2)), half = (count + 1) / 2;
      is_partial_ |= count < each.count;
      room /= static_cast<double>(count);
      const std::size_t before = begins.size();
      for (__int128 n = 1; n < count; ++n)
        for (std::size_t b = 0; b < before; ++b)
          begins.push_back(begins[b] + (n < half ? n : each.count - count + n) * each.distance);
    }
    std::ranges::sort(begins);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
    for (const __int128 begin : begins) {
      const auto first = static_cast<std::uint64_t>(begin), end = static_cast<std::uint64_t>(begin + run);
      if (!result.empty() && first <= result.back().second)
        result.back().second = std::max(result.back().second, end);
      else
        result.emplace_back(first, end);
    }
    return result;
  }

  const kernel_model& kernel_;
  const launch& launch_;
  const subgrid& blocks_;
  launch_ranges ranges_;
  std::vector<std::optional<std::int64_t>> most_;  // by loop
  std::vector<variable> variables_;
  std::vector<sum> forms_;  // the address, then the needs
  bool is_partial_ = false;
  std::optional<box> shape_;
};

std::vector<certain_access> certain_accesses::of(const launch& l, const subgrid& blocks) const {
  std::vector<certain_access> result;
  if (known_.empty() || !l.is_possible() || blocks.blocks() == 0) return result;
  launch_solver solver(kernel_, l, blocks);
  for (const known_access& each : known_) {
    auto ranges = solver.solve(each);
    if (ranges.empty()) continue;
    result.push_back({&kernel_.analysis().kernel->code[each.of->position], each.number, each.of->what, each.pointer,
                      std::move(ranges), solver.is_partial(), solver.shape()});
  }
  return result;
}

}  // namespace hpe::spread
