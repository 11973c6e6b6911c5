#include "runtime/ptx/analysis/access.h"

#include <algorithm>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx::analysis {

namespace {

constexpr std::size_t most_forms = 8;
constexpr unsigned most_choices = 6;  // limits the choices that expand() replaces by their alternatives in one address
constexpr unsigned most_predicates = 64;  // limits the predicates that comparison_finder examines for one access

}  // namespace

bool dependence::unite(const dependence& other) {
  const dependence before = *this;
  for (std::size_t a = 0; a < block.size(); ++a) block[a] = block[a] || other.block[a];
  thread |= other.thread;
  loop |= other.loop;
  data |= other.data;
  return before.block != block || before.thread != thread || before.loop != loop || before.data != data;
}

dependences::dependences(kernel_walk& walk)
    : walk_(walk),
      quantities_(walk.table().quantities()),
      assumes_(walk.table().quantities()),
      ends_(walk.flow().loops().size()) {
  for (std::uint32_t l = 0; l < ends_.size(); ++l) endings_.push_back(walk.endings_of(l));
  for (quantity_id q = 0; q < quantities_.size(); ++q) {
    quantities_[q] = own(walk.table().of(q));
    assumes_[q] = walk.table().of(q).assumes;
  }
  while (pass()) {
  }
}

dependence dependences::own(const quantity& q) const {
  dependence d;
  d.data = q.is_data;
  d.thread = q.is_thread || q.what == quantity::kind::thread_index;
  d.loop = q.what == quantity::kind::counter || q.what == quantity::kind::recurrence;
  if (q.what == quantity::kind::block_index) d.block[q.number] = true;
  return d;
}

// Adds the dependences of operands to the dependences of each quantity. Returns whether a dependence was added. The
// caller repeats the pass until none is added.
bool dependences::pass() {
  const expressions& table = walk_.table();
  bool changed = false;
  for (quantity_id q = 0; q < quantities_.size(); ++q) {
    for (const auto* list : {&table.of(q).operands, &table.of(q).conditions}) {
      for (const expression_id e : *list) {
        for (const term& t : table.at(e)) {
          for (std::size_t n = 0; n < t.of.count; ++n) {
            const quantity_id other = t.of.factors[n];
            changed |= quantities_[q].unite(inside(other, table.of(q).varies));
            changed |= (assumes_[other] & ~assumes_[q]) != 0;
            assumes_[q] |= assumes_[other];
          }
        }
      }
    }
  }
  for (std::uint32_t l = 0; l < ends_.size(); ++l)
    for (const kernel_walk::decision& d : endings_[l]) changed |= ends_[l].unite(of(d.what.of, d.block));
  return changed;
}

dependence dependences::of_quantity(quantity_id q, std::uint32_t block) const {
  if (q >= quantities_.size()) {  // created after the computation of the dependences: may depend on anything
    dependence d;
    d.data = true;
    return d;
  }
  return inside(q, walk_.flow().blocks()[block].loops);
}

// After a loop, a quantity that varies in the loop has its value from the last iteration. The quantity therefore also
// depends on the decisions that end the loop.
dependence dependences::inside(quantity_id q, loop_set loops) const {
  dependence d = quantities_[q];
  const loop_set ended = walk_.table().of(q).varies.without(loops);
  for (std::uint32_t l = 0; l < ends_.size(); ++l)
    if (ended.has(l)) d.unite(ends_[l]);
  return d;
}

dependence dependences::of(expression_id e, std::uint32_t block) const {
  dependence d;
  for (const term& t : walk_.table().at(e))
    for (std::size_t n = 0; n < t.of.count; ++n) d.unite(of_quantity(t.of.factors[n], block));
  return d;
}

assumption_set dependences::assumes(expression_id e) const {
  assumption_set all = 0;
  for (const term& t : walk_.table().at(e))
    for (std::size_t n = 0; n < t.of.count; ++n)
      if (t.of.factors[n] < assumes_.size()) all |= assumes_[t.of.factors[n]];
  return all;
}

namespace {

// Derives comparisons from predicates. Ignores all predicates after the first most_predicates.
class comparison_finder {
 public:
  explicit comparison_finder(expressions& table) : table_(table) {}

  // Appends the comparisons that follow from a predicate to `to`.
  void split(const condition& c, std::vector<comparison>& to) {
    if (++predicates_ > most_predicates) return lose();
    // 1 - p is the negation of the predicate p.
    const polynomial& p = table_.at(c.predicate);
    if (p.size() == 2 && p[0].of.is_one() && p[0].factor == 1 && p[1].factor == -1 && p[1].of.count == 1)
      return split({table_.single(p[1].of.factors[0]), !c.holds, c.assumes}, to);
    const auto id = table_.single_of(c.predicate);
    if (!id || table_.of(*id).what != quantity::kind::node || table_.of(*id).made_by == nullptr) return lose();
    const quantity q = table_.of(*id);
    const instruction& i = *q.made_by;
    if (i.op == opcode::not_) return split({q.operands[0], !c.holds, c.assumes}, to);
    if (i.op == (c.holds ? opcode::and_ : opcode::or_)) {
      for (const expression_id e : q.operands) split({e, c.holds, c.assumes}, to);
      return;
    }
    if (i.op != opcode::setp) return lose();
    if (q.operands.size() != 2 || is_float(i.types[0])) lose();
    compare(i, q, c, to);
  }
  /// Whether the comparisons say all that the predicates say.
  [[nodiscard]] bool is_exact() const { return is_exact_; }

 private:
  void lose() { is_exact_ = false; }

  void compare(const instruction& i, const quantity& q, const condition& c, std::vector<comparison>& to) {
    comparison found;
    switch (describe(i).compare) {
      case modifier::eq: found.how = relation::equal; break;
      case modifier::ne: found.how = relation::unequal; break;
      case modifier::lt:
      case modifier::lo: found.how = relation::less; break;
      case modifier::le:
      case modifier::ls: found.how = relation::less_or_equal; break;
      case modifier::gt:
      case modifier::hi: found.how = relation::greater; break;
      case modifier::ge:
      case modifier::hs: found.how = relation::greater_or_equal; break;
      default: return lose();
    }
    constexpr relation opposite[] = {relation::unequal, relation::equal,         relation::greater_or_equal,
                                     relation::greater, relation::less_or_equal, relation::less};
    if (!c.holds) found.how = opposite[static_cast<std::size_t>(found.how)];
    found.left = q.operands[0];
    found.right = q.operands[1];
    found.bits = static_cast<std::uint8_t>(bits_of(i.types[0]));
    found.is_signed = is_signed(i.types[0]);
    found.assumes = c.assumes | q.assumes;
    to.push_back(found);
  }

  expressions& table_;
  unsigned predicates_ = 0;
  bool is_exact_ = true;
};

}  // namespace

std::vector<comparison> comparisons_of(expressions& table, std::span<const condition> conditions) {
  std::vector<comparison> found;
  comparison_finder finder(table);
  for (const condition& c : conditions) finder.split(c, found);
  return found;
}

std::optional<std::vector<comparison>> equivalents_of(expressions& table, std::span<const condition> conditions) {
  std::vector<comparison> found;
  comparison_finder finder(table);
  for (const condition& c : conditions) finder.split(c, found);
  return finder.is_exact() ? std::optional(std::move(found)) : std::nullopt;
}

namespace {

class access_finder {
 public:
  access_finder(const program& p, const function& f, kernel_walk& walk, const dependences& known)
      : program_(p), function_(f), walk_(walk), table_(walk.table()), known_(known) {}

  std::vector<access> run() {
    for (const std::uint32_t b : walk_.flow().order()) {
      block_ = b;
      for (std::uint32_t n = walk_.flow().blocks()[b].first; n < walk_.flow().blocks()[b].last; ++n) look(n);
    }
    std::sort(found_.begin(), found_.end(), [](const access& a, const access& b) { return a.position < b.position; });
    return std::move(found_);
  }

 private:
  void look(std::uint32_t position) {
    const instruction& i = function_.code[position];
    const std::uint32_t bytes = bytes_of(i.types[0]);
    switch (i.kind) {
      case kind::load: return add(position, 0, access_kind::read, i.op == opcode::wmma ? 0 : bytes * i.vector);
      case kind::store: return add(position, 0, access_kind::write, i.op == opcode::wmma ? 0 : bytes * i.vector);
      case kind::atomic: return add(position, 0, access_kind::atomic, bytes);
      case kind::copy_async: {
        const auto size = table_.constant_of(walk_.source_of(position, 2).of);
        return add(position, 1, access_kind::read,
                   i.sources.size() == 3 && size ? static_cast<std::uint32_t>(*size) : 0);
      }
      case kind::routine:
        if (i.op != opcode::cp || !i.has(modifier::bulk)) return;
        if (i.has(modifier::bulk_group)) return add(position, 0, access_kind::write, 0);
        return add(position, 1, access_kind::read, 0);
      default: return;
    }
  }

  void add(std::uint32_t position, std::uint32_t operand, access_kind what, std::uint32_t bytes) {
    const instruction& i = function_.code[position];
    using enum modifier;
    const modifier space =
        i.modifiers.one_of(global, shared, shared_cta, local, constant, param, param_entry, param_func);
    const bool copies = i.kind == kind::copy_async ||
                        i.kind == kind::routine;  // the instruction copies between global and shared memory
    if (!copies && space != global && space != modifier::count) return;
    const operand::kind where = i.sources[operand].what;
    if (where == operand::kind::formal || where == operand::kind::scratch || where == operand::kind::local) return;
    access found;
    found.position = position;
    found.operand = operand;
    found.what = what;
    found.bytes = bytes;
    const value address = walk_.address_of(position, operand);
    expand(address.of, address.assumes, 0, most_forms, found.forms);
    std::erase_if(found.forms, [this](const address_form& f) { return is_elsewhere(f); });
    if (found.forms.empty()) return;  // the address is in shared memory, in local memory or in the parameters
    found.how = address_class::local;
    for (const address_form& f : found.forms) found.how = std::max(found.how, f.how);
    std::vector<condition> conditions;
    if (const auto guard = walk_.guard_of(position)) conditions.push_back(*guard);
    for (condition& c : walk_.conditions_at(block_)) conditions.push_back(std::move(c));
    found.where = comparisons_of(table_, conditions);
    found_.push_back(std::move(found));
  }

  // Returns whether the address is in shared memory, in local memory or in the parameters, and not in global memory.
  [[nodiscard]] bool is_elsewhere(const address_form& f) const {
    for (const term& t : table_.at(f.whole)) {
      if (t.of.count != 1 || t.factor != 1) continue;
      const quantity& q = table_.of(t.of.factors[0]);
      if (q.what == quantity::kind::variable && program_.symbols[q.number].where != symbol::space::global) return true;
      if (q.what == quantity::kind::result && q.is_thread && q.bits == 64 &&
          q.number == static_cast<std::uint32_t>(operand::kind::local))
        return true;
      if (q.what == quantity::kind::formals) return true;
    }
    return false;
  }

  [[nodiscard]] std::size_t alternatives_of(const quantity& q) const {
    if (q.bits < 32) return 0;
    if (q.what == quantity::kind::choice) return q.operands.size();
    const bool selects =
        q.what == quantity::kind::node && q.made_by != nullptr && !q.made_by->has(modifier::relu) &&
        (q.made_by->op == opcode::selp || q.made_by->op == opcode::min || q.made_by->op == opcode::max);
    return selects ? 2 : 0;
  }

  // Replaces each choice by its alternatives, so that each alternative becomes a form. Adds forms only up to a total of
  // `most`.
  void expand(expression_id address, assumption_set assumes, unsigned choices, std::size_t most,
              std::vector<address_form>& forms) {
    for (const term& t : table_.at(address)) {
      for (std::size_t n = 0; n < t.of.count; ++n) {
        const quantity_id q = t.of.factors[n];
        const std::size_t count = alternatives_of(table_.of(q));
        if (count == 0 || choices == most_choices || forms.size() + count > most) continue;
        std::vector<std::pair<expression_id, assumption_set>> all;
        for (std::size_t a = 0; a < count; ++a) {
          const expression_id e = table_.of(q).operands[a];
          assumption_set needs = assumes | table_.of(q).assumes | known_.assumes(e);
          const unsigned bits = table_.of(q).bits;
          if (bits < 64 && !table_.range_of(e).lies_in(range_of_bits(bits, true))) {
            const auto fits = walk_.assumptions().number_of({e, static_cast<std::uint8_t>(bits), true});
            if (!fits) break;
            needs |= *fits;
          }
          const auto with = table_.replaced(address, q, e);
          if (!with) break;
          if (std::none_of(all.begin(), all.end(), [&](const auto& other) { return other.first == *with; }))
            all.emplace_back(*with, needs);
          if (a + 1 == count) {
            // Reserve one form for each of the remaining alternatives.
            for (std::size_t k = 0; k < all.size(); ++k)
              expand(all[k].first, all[k].second, choices + 1, most - (all.size() - 1 - k), forms);
            return;
          }
        }
      }
    }
    if (std::any_of(forms.begin(), forms.end(), [&](const address_form& f) { return f.whole == address; })) return;
    forms.push_back(classify(address, assumes | known_.assumes(address)));
  }

  address_form classify(expression_id address, assumption_set assumes) {
    address_form form;
    form.whole = address;
    form.assumes = assumes;
    form.base = base_of(address);
    form.how = address_class::local;
    std::array<polynomial, 3> blocks;
    polynomial rest;
    for (const term& t : table_.at(address)) {
      if (form.base && t.of.count == 1 && t.of.factors[0] == *form.base) continue;
      std::optional<std::uint32_t> axis;
      const address_class how = class_of(t, axis);
      form.how = std::max(form.how, how);
      if (!axis) {
        rest.push_back(t);
        continue;
      }
      term factor{{}, t.factor};
      for (std::size_t n = 0; n < t.of.count; ++n)
        if (table_.of(t.of.factors[n]).what != quantity::kind::block_index)
          factor.of.factors[factor.of.count++] = t.of.factors[n];
      blocks[*axis].push_back(factor);
    }
    if (!form.base) form.how = address_class::data_dependent;
    for (std::size_t a = 0; a < blocks.size(); ++a) form.blocks[a] = table_.intern(std::move(blocks[a]));
    form.rest = table_.intern(std::move(rest));
    return form;
  }

  // Returns the class of a term. For class affine, also sets `axis`.
  address_class class_of(const term& t, std::optional<std::uint32_t>& axis) const {
    dependence others;
    std::optional<std::uint32_t> index;
    bool whole_grid = false;  // the term is a multiple of the grid's size
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity& q = table_.of(t.of.factors[n]);
      whole_grid |= q.what == quantity::kind::grid_size;
      if (q.what == quantity::kind::block_index && !index) {
        index = q.number;
      } else {
        others.unite(known_.of_quantity(t.of.factors[n], block_));
      }
    }
    if (others.data) return address_class::data_dependent;
    if (index && others.is_uniform()) {
      axis = index;
      return address_class::affine;
    }
    // In a grid-stride loop, blocks may repeat the loop a different number of times, but the address is local.
    if (index || (others.on_block() && !(whole_grid && counts_only(t)))) return address_class::irregular;
    return address_class::local;
  }

  // Returns whether every factor of the term is a loop counter or uniform (dependence::is_uniform).
  [[nodiscard]] bool counts_only(const term& t) const {
    for (std::size_t n = 0; n < t.of.count; ++n) {
      const quantity& q = table_.of(t.of.factors[n]);
      if (q.what != quantity::kind::counter && !known_.of_quantity(t.of.factors[n], block_).is_uniform()) return false;
    }
    return true;
  }

  // Returns the term of the address that is a pointer: a variable, or a parameter that the kernel uses as a pointer. If
  // the address has neither, returns its only 64-bit term that is a parameter, or an instruction's result that is the
  // same in all threads of the grid during the whole launch.
  [[nodiscard]] std::optional<quantity_id> base_of(expression_id address) const {
    std::vector<quantity_id> sure, possible;
    for (const term& t : table_.at(address)) {
      if (t.of.count != 1 || t.factor != 1) continue;
      const quantity_id id = t.of.factors[0];
      const quantity& q = table_.of(id);
      if (q.bits != 64) continue;
      const bool constant = q.what == quantity::kind::result && known_.of_quantity(id, block_).is_uniform();
      if (q.what == quantity::kind::variable || (q.what == quantity::kind::parameter && q.is_pointer))
        sure.push_back(id);
      if (q.what == quantity::kind::parameter || constant) possible.push_back(id);
    }
    if (sure.size() == 1) return sure[0];
    if (sure.empty() && possible.size() == 1) return possible[0];
    return std::nullopt;
  }

  const program& program_;
  const function& function_;
  kernel_walk& walk_;
  expressions& table_;
  const dependences& known_;
  std::uint32_t block_ = 0;
  std::vector<access> found_;
};

}  // namespace

std::vector<access> find_accesses(const program& p, const function& f, kernel_walk& walk, const dependences& known) {
  return access_finder(p, f, walk, known).run();
}

}  // namespace hpe::ptx::analysis
