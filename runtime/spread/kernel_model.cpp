#include "runtime/spread/kernel_model.h"

#include <algorithm>
#include <set>

#include "runtime/base/error.h"

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
    : program_(std::move(program)), analysis_(analyse(*program_, kernel_of(*program_, name))) {
  if (!analysis_.verdict.may_be_spread()) {
    obstacle_ = analysis_.verdict.obstacles.front();
  } else if (!analysis_.walk->is_complete()) {
    obstacle_ = "control flow that cannot be followed";
  }
  find_pointers();
  find_decisive_parameters();
}

std::optional<std::uint32_t> kernel_model::pointer_of(const address_form& form) const {
  if (!form.base) return std::nullopt;
  const quantity& base = analysis_.walk->table().of(*form.base);
  if (base.what != quantity::kind::parameter) return std::nullopt;
  const auto found =
      std::find_if(pointers_.begin(), pointers_.end(), [&](const pointer& p) { return p.offset == base.number; });
  return static_cast<std::uint32_t>(found - pointers_.begin());
}

void kernel_model::find_pointers() {
  const expressions& table = analysis_.walk->table();
  for (const access& a : analysis_.accesses) {
    const bool writes = a.what != access_kind::read, reads = a.what != access_kind::write;
    if (a.forms.empty()) writes_anywhere_ |= writes;
    for (const address_form& form : a.forms) {
      if (!form.base) {
        writes_anywhere_ |= writes;
        continue;
      }
      const quantity& base = table.of(*form.base);
      if (base.what == quantity::kind::variable) continue;
      if (base.what != quantity::kind::parameter) {
        writes_anywhere_ |= writes;
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
