#include "runtime/spread/model/kernel_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/spread/model/certain_accesses.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

const ptx::function& kernel_of(const ptx::program& p, const std::string& name) {
  const ptx::function* const found = p.find_kernel(name);
  HPE_REQUIRE(found != nullptr, HPE_ERROR_NOT_FOUND, "no kernel '{}' in the module", name);
  return *found;
}

}  // namespace

kernel_model::kernel_model(std::shared_ptr<const ptx::program> program, const std::string& name)
    : program_(std::move(program)), analysis_(analyse(*program_, kernel_of(*program_, name))), counts_(analysis_) {
  if (!analysis_.verdict.may_be_spread()) {
    obstacle_ = analysis_.verdict.obstacles.front();
  } else if (!analysis_.walk->is_complete()) {
    obstacle_ = "it has control flow that hpe cannot analyse";
  }
  find_pointers();
  find_copyable_pointers();
  find_decisive_parameters();
  certain_ = std::make_unique<const certain_accesses>(*this);
}

kernel_model::~kernel_model() = default;

std::optional<std::uint32_t> kernel_model::pointer_of(const address_form& form) const {
  if (!form.base) return std::nullopt;
  const quantity& base = analysis_.walk->table().of(*form.base);
  if (base.what != quantity::kind::parameter) return std::nullopt;
  const auto found =
      std::find_if(pointers_.begin(), pointers_.end(), [&](const pointer& p) { return p.offset == base.number; });
  return static_cast<std::uint32_t>(found - pointers_.begin());
}

void kernel_model::append_key(std::string& key, const launch& l) const {
  append(key, reinterpret_cast<std::uintptr_t>(this));
  append(key, l.grid);
  append(key, l.block);
  for (const pointer& p : pointers_) append(key, l.pointer_at(p.offset));
  append_decisive(key, l);
}

void kernel_model::append_decisive(std::string& key, const launch& l) const {
  for (const bytes& b : decisive_)
    if (b.offset + b.size <= l.parameter_bytes) key.append(static_cast<const char*>(l.parameters) + b.offset, b.size);
}

std::size_t kernel_model::parameter_at(std::uint32_t offset) const {
  const auto& formals = analysis_.kernel->formals;
  const auto after = std::upper_bound(formals.begin(), formals.end(), offset,
                                      [](std::uint32_t at, const auto& formal) { return at < formal.offset; });
  return static_cast<std::size_t>(after - formals.begin());
}

void kernel_model::find_pointers() {
  const expressions& table = analysis_.walk->table();
  finds_pointers_ = writes_anywhere_ = !analysis_.left_out.empty();
  for (const access& a : analysis_.accesses) {
    const bool writes = a.what != access_kind::read, reads = a.what != access_kind::write;
    const auto is_unknown = [&] {
      finds_pointers_ = true;
      writes_anywhere_ |= writes;
    };
    if (a.forms.empty()) is_unknown();
    for (const address_form& form : a.forms) {
      if (!form.base) {
        is_unknown();
        continue;
      }
      const quantity& base = table.of(*form.base);
      if (base.what == quantity::kind::variable) continue;
      if (base.what != quantity::kind::parameter) {
        is_unknown();
        continue;
      }
      auto at =
          std::find_if(pointers_.begin(), pointers_.end(), [&](const pointer& p) { return p.offset >= base.number; });
      if (at == pointers_.end() || at->offset != base.number) {
        at = pointers_.insert(at, pointer{});
        at->offset = base.number;
      }
      at->is_read |= reads;
      at->is_written |= writes;
    }
  }
}

namespace {

/// Returns, for each quantity, whether it is computed from the address in a parameter. Values loaded through this
/// address do not count.
std::vector<bool> that_follow_from(const expressions& table, std::uint32_t parameter) {
  std::vector<bool> follows(table.quantities());
  const auto mentions = [&](const std::vector<expression_id>& list) {
    for (const expression_id e : list)
      for (const term& t : table.at(e))
        for (std::size_t n = 0; n < t.of.count; ++n)
          if (follows[t.of.factors[n]]) return true;
    return false;
  };
  for (bool changed = true; std::exchange(changed, false);) {
    for (quantity_id id = 0; id < follows.size(); ++id) {
      const quantity& q = table.of(id);
      if (follows[id] || q.is_data) continue;
      const bool is_it = q.what == quantity::kind::parameter && q.number == parameter;
      follows[id] = is_it || mentions(q.operands) || mentions(q.conditions);
      changed |= follows[id];
    }
  }
  return follows;
}

/// Returns whether an instruction uses a source operand only as the address of an access (no volatile or ordered load),
/// or only in a conversion, move or sum from which another address may follow.
bool only_addresses(const ptx::instruction& i, std::size_t source) {
  using ptx::kind;
  using ptx::modifier;
  switch (i.kind) {
    case kind::load:
      return !i.has(modifier::volatile_) && !i.has(modifier::mmio) &&
             i.modifiers.one_of(modifier::relaxed, modifier::acquire) == modifier::count;
    case kind::store:
    case kind::atomic: return source == 0;
    case kind::copy_async: return source == 1;
    case kind::address_space: return i.op == ptx::opcode::cvta;
    case kind::pure:
      return i.op == ptx::opcode::mov || i.op == ptx::opcode::add || i.op == ptx::opcode::mad ||
             i.op == ptx::opcode::cvt;
    default: return false;
  }
}

}  // namespace

void kernel_model::find_copyable_pointers() {
  kernel_walk& walk = *analysis_.walk;
  const auto& code = analysis_.kernel->code;
  const bool calls = std::any_of(code.begin(), code.end(), [](const ptx::instruction& i) {
    return i.kind == ptx::kind::call && !i.arguments.empty();
  });
  if (!walk.is_complete() || calls) return;
  const expressions& table = walk.table();
  for (pointer& p : pointers_) {
    if (p.is_written) continue;
    const std::vector<bool> follows = that_follow_from(table, p.offset);
    const auto uses_it = [&](const value& v) {
      for (const term& t : table.at(v.of))
        for (std::size_t n = 0; n < t.of.count; ++n)
          if (follows[t.of.factors[n]]) return true;
      return false;
    };
    p.may_be_copied = true;
    for (const std::uint32_t b : walk.flow().order()) {
      const flow_block& block = walk.flow().blocks()[b];
      for (std::uint32_t at = block.first; at < block.last; ++at)
        for (std::size_t n = 0; n < code[at].sources.size(); ++n)
          if (uses_it(walk.source_of(at, n)) && !only_addresses(code[at], n)) p.may_be_copied = false;
    }
  }
}

void kernel_model::find_decisive_parameters() {
  kernel_walk& walk = *analysis_.walk;
  const expressions& table = walk.table();
  std::set<quantity_id> seen;
  std::vector<expression_id> todo;
  for (const access& a : analysis_.accesses) {
    for (const address_form& form : a.forms) todo.push_back(form.whole);
    for (const comparison& c : a.where) todo.insert(todo.end(), {c.left, c.right});
  }
  for (std::uint32_t l = 0; l < walk.flow().loops().size(); ++l)
    for (const std::uint32_t b : walk.flow().loops()[l].blocks)
      if (const auto decision = walk.decision_of(b)) todo.push_back(decision->of);
  while (!todo.empty()) {
    const expression_id e = todo.back();
    todo.pop_back();
    for (const term& t : table.at(e)) {
      for (std::size_t n = 0; n < t.of.count; ++n) {
        if (!seen.insert(t.of.factors[n]).second) continue;
        const quantity& q = table.of(t.of.factors[n]);
        todo.insert(todo.end(), q.operands.begin(), q.operands.end());
        todo.insert(todo.end(), q.conditions.begin(), q.conditions.end());
        const bool is_base =
            std::any_of(pointers_.begin(), pointers_.end(), [&](const pointer& p) { return p.offset == q.number; });
        if (q.what == quantity::kind::parameter && !is_base) decisive_.push_back({q.number, q.bits / 8U});
      }
    }
  }
  std::sort(decisive_.begin(), decisive_.end(), [](const bytes& a, const bytes& b) { return a.offset < b.offset; });
}

}  // namespace hpe::spread
