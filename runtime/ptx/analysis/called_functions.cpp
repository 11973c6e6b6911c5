#include "runtime/ptx/analysis/called_functions.h"

namespace hpe::ptx::analysis {

bool is_shared(const instruction& i) {
  return i.modifiers.one_of(modifier::shared, modifier::shared_cta, modifier::shared_cluster) != modifier::count;
}

bool has_block_scope(const instruction& i) {
  return i.modifiers.one_of(modifier::cta, modifier::cluster) != modifier::count;
}

bool is_ordered(const instruction& i) {
  return i.modifiers.one_of(modifier::relaxed, modifier::acquire, modifier::release) != modifier::count;
}

bool reaches_device(const instruction& i) {
  return i.kind == kind::fence && !has_block_scope(i) && !i.has(modifier::proxy) && !i.has(modifier::mbarrier_init);
}

modifier space_of(const instruction& i) {
  using enum modifier;
  return is_shared(i) ? shared : i.modifiers.one_of(global, local, constant, param, param_entry, param_func);
}

bool synchronises(const instruction& i) {
  return i.kind == kind::barrier || i.kind == kind::fence || (i.kind == kind::warp && i.op == opcode::bar);
}

bool is_argument(const instruction& i) { return i.kind == kind::store && i.sources[0].what == operand::kind::scratch; }

bool stores(const instruction& i) {
  return i.kind == kind::store && i.modifiers.one_of(modifier::param, modifier::param_func) == modifier::count;
}

bool takes_numbers(const instruction& atomic) {
  return atomic.modifiers.one_of(modifier::op_add, modifier::op_inc, modifier::op_dec) != modifier::count;
}

void called_functions::add(const instruction& call) {
  note(call);
  while (!rest_.empty()) {
    const function& f = *rest_.back();
    rest_.pop_back();
    for (const instruction& i : f.code) look(i);
  }
}

void called_functions::note(const instruction& call) {
  if (!call.sources.empty()) {  // a call through a pointer, which may run any function
    polls = stores_to_any = has_fence = synchronises = true;
  } else if (const function* const f = program_.functions[call.callee].get(); seen_.insert(f).second) {
    rest_.push_back(f);
  }
}

namespace {

bool is_zero(const operand& o) { return o.what == operand::kind::immediate && o.value == 0; }

}  // namespace

void called_functions::look(const instruction& i) {
  if (i.kind == kind::call) return note(i);
  for (const operand& o : i.sources)
    if (o.what == operand::kind::symbol) symbols.insert(o.index);
  if (stores(i) && i.sources[0].what != operand::kind::local) {
    stores_to_any |= space_of(i) == modifier::count;
    stores_to_shared |= space_of(i) == modifier::shared;
  }
  has_fence |= reaches_device(i);
  synchronises |= analysis::synchronises(i);
  may_pass_zero |= (i.op == opcode::mov && is_zero(i.sources[0])) || (is_argument(i) && is_zero(i.sources[1]));
  if (is_shared(i)) return;
  polls |= i.kind == kind::load && (i.is_strong() || i.has(modifier::cg));
  if (i.kind != kind::atomic || i.results.empty()) return;
  counts |= takes_numbers(i) && i.sources[1].is_register();
  polls |= !takes_numbers(i) || is_zero(i.sources[1]);
}

}  // namespace hpe::ptx::analysis
