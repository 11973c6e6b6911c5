#include "runtime/ptx/execution/interpreter.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstring>

#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/execution/calls/system_call.h"
#include "runtime/ptx/execution/interpreted_thread.h"
#include "runtime/ptx/execution/textures/texture_access.h"
#include "runtime/ptx/program/routine.h"

namespace hpe::ptx {

interpreter::interpreter(const program& p, ptx::instruction_observer* observer)
    : program_(p), observer_(observer), points_(1, nullptr) {
  for (const auto& f : p.functions) {
    std::vector<std::uint32_t>& numbers = numbers_[f.get()];
    for (const instruction& i : f->code) {
      const bool meets =
          i.kind == kind::warp || i.kind == kind::barrier || i.kind == kind::matrix || i.kind == kind::pause;
      numbers.push_back(meets ? static_cast<std::uint32_t>(points_.size()) : 0);
      if (meets) points_.push_back(&i);
    }
  }
}

interpreter::~interpreter() = default;

void interpreter::begin(block_context& block) {
  threads_.resize(block.thread_count);
  for (auto& t : threads_) t = std::make_unique<thread>();
}

std::uint32_t interpreter::run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t t = first; t < last; ++t) {
    block.current = t;
    interpreted_thread(*this, block, t, *threads_[t]).run(point == 0);
  }
  const std::uint32_t next = block.next[first];
  return std::all_of(block.next + first, block.next + last, [next](std::uint32_t n) { return n == next; })
             ? next
             : block_context::mixed;
}

// Compares the positions of lanes in all their active calls, the outermost call first.
std::uint32_t interpreter::earliest(const block_context& /*block*/, std::uint32_t first, std::uint32_t lanes) const {
  const auto compare = [](const thread& a, const thread& b) {
    return std::lexicographical_compare_three_way(
        a.stack.begin(), a.stack.end(), b.stack.begin(), b.stack.end(),
        [](const auto& x, const auto& y) { return x->position <=> y->position; });
  };
  auto best = static_cast<std::uint32_t>(std::countr_zero(lanes));
  std::uint32_t found = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto order = compare(*threads_[first + lane], *threads_[first + best]);
    if (std::is_gt(order)) continue;
    if (std::is_lt(order)) found = 0;
    best = lane;
    found |= 1U << lane;
  }
  return found;
}

void interpreted_thread::enter(const function& f) {
  auto callee = std::make_unique<interpreter::frame>();
  callee->what = &f;
  callee->numbers = interpreter_.numbers_.at(&f).data();
  callee->registers.resize(f.registers.size());
  callee->formals.resize(f.is_kernel ? 0 : f.formals_size);
  callee->scratch.resize(f.scratch_size);
  const std::uint64_t begin =
      stack_.empty() ? 0 : (stack_.back()->local + stack_.back()->what->local_size + 15) / 16 * 16;
  callee->local = begin;
  if (begin + f.local_size > block_.local_stride - 64 && f.local_size > 0) fail(trap::reason::stack, 0);
  if (stack_.size() > 20000) fail(trap::reason::stack, 0);
  stack_.push_back(std::move(callee));
  top_ = stack_.back().get();
}

// Runs the thread to its next meeting point or to its end.
void interpreted_thread::run(bool from_entry) {
  if (from_entry) enter(*block_.configuration->kernel);
  top_ = stack_.back().get();
  while (top_ != nullptr) {
    const std::uint32_t position = top_->position++;
    const instruction& i = top_->what->code[position];
    const bool runs = !i.guard.is_register() || value(i.guard) != 0;
    if (interpreter_.observer_ != nullptr)
      interpreter_.observer_->comes_to(block_, number_, *top_->what, position, top_->registers.data(), runs);
    if (!runs) continue;
    if (const std::uint32_t point = top_->numbers[position]; point != 0) {
      if (i.kind == kind::pause && i.op == opcode::pause && --block_.budget > 0) continue;
      block_.bases[number_] = top_->registers.data();
      block_.next[number_] = point;
      return;
    }
    execute(i);
  }
  block_.next[number_] = block_context::ended;
}

void interpreted_thread::fail(trap::reason why, std::uint64_t address) {
  std::string where;
  if (!stack_.empty()) {
    const function& f = *stack_.back()->what;
    const std::uint32_t position = stack_.back()->position;
    where = place_of(interpreter_.program_, f, f.code[position == 0 ? 0 : position - 1]);
  }
  block_.fail(why, address, where);
}

std::uint64_t interpreted_thread::value(const operand& o) const {
  switch (o.what) {
    case operand::kind::reg: return o.negated ? top_->registers[o.index] ^ 1 : top_->registers[o.index];
    case operand::kind::immediate: return o.value;
    case operand::kind::none: return 0;
    default: return address(o);
  }
}

// Returns the address in an operand; for shared memory, the offset.
std::uint64_t interpreted_thread::address(const operand& o) const {
  switch (o.what) {
    case operand::kind::reg: return top_->registers[o.index] + o.value;
    case operand::kind::symbol: return address_of_symbol(block_, o.index) + o.value;
    case operand::kind::formal:
      return reinterpret_cast<std::uint64_t>(top_->what->is_kernel ? block_.parameters : top_->formals.data()) +
             o.value;
    case operand::kind::scratch: return reinterpret_cast<std::uint64_t>(top_->scratch.data()) + o.value;
    case operand::kind::local:
      return reinterpret_cast<std::uint64_t>(block_.local) + number_ * block_.local_stride + top_->local + o.value;
    case operand::kind::function: return block_.configuration->image->address_of_function(o.index);
    default: return o.value;
  }
}

void interpreted_thread::set(const operand& o, std::uint64_t value) {
  if (!o.is_register()) return;
  const unsigned bits = bits_of(top_->what->registers[o.index]);
  top_->registers[o.index] = bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

void interpreted_thread::compute(const instruction& i) {
  std::uint64_t operands[4] = {0, 0, 0, 0};
  for (std::size_t n = 0; n < i.sources.size(); ++n) operands[n] = value(i.sources[n]);
  if (i.sources.size() < 4) operands[3] = describe(i).pack();
  // prmt and lop3 need no descriptor, and ignore the fourth argument
  set(i.results[0], i.scalar(operands[0], operands[1], operands[2], operands[3]));
}

void interpreted_thread::execute(const instruction& i) {
  switch (i.kind) {
    case kind::pure: return compute(i);
    case kind::special:
      return set(i.results[0], read_special(block_, number_, static_cast<special_register>(i.sources[0].value)));
    case kind::load: return load(i);
    case kind::store: return store(i);
    case kind::atomic: return update(i);
    case kind::copy_async: return copy(i);
    case kind::address_space: return set(i.results[0], convert_address(block_, i, value(i.sources[0])));
    case kind::texture: {
      std::uint64_t sources[most_texture_sources] = {}, results[most_texture_results] = {};
      for (std::size_t n = 0; n < i.sources.size(); ++n) sources[n] = value(i.sources[n]);
      access_texture(block_, number_, i, sources, results);
      for (std::size_t n = 0; n < i.results.size(); ++n) set(i.results[n], results[n]);
      return;
    }
    case kind::routine: {
      std::uint64_t sources[most_routine_sources] = {};
      for (std::size_t n = 0; n < i.sources.size(); ++n) sources[n] = address(i.sources[n]);
      const std::uint64_t result = run_routine(block_, number_, i, sources);
      if (!i.results.empty()) set(i.results[0], result);
      return;
    }
    case kind::fence: return __atomic_thread_fence(__ATOMIC_SEQ_CST);
    case kind::branch: top_->position = i.targets[0]; return;
    case kind::branch_table: {
      const std::uint64_t which = value(i.sources[0]);
      if (which >= i.targets.size()) fail(trap::reason::illegal, 0);
      top_->position = i.targets[which];
      return;
    }
    case kind::call: return call(i);
    case kind::ret: return leave();
    case kind::exit:
      stack_.clear();
      top_ = nullptr;
      return;
    case kind::trap: fail(trap::reason::trap, 0);
    default:
      if (i.op == opcode::cp && block_.races != nullptr) order_copies(i);
      return;  // the instruction has no effect, or the scheduler executes it
  }
}

void interpreted_thread::call(const instruction& i) {
  const function* callee = nullptr;
  if (i.sources.empty()) {
    callee = interpreter_.program_.functions[i.callee].get();
  } else {
    const std::uint64_t target = value(i.sources[0]);
    callee = block_.configuration->image->function_at(target);
    if (callee == nullptr) fail(trap::reason::bad_function, target);
  }
  std::size_t n = 0;
  std::vector<std::uint8_t> formals(callee->formals_size);
  for (const formal_parameter& p : callee->formals) {
    if (p.is_result || n >= i.arguments.size()) continue;
    const argument& a = i.arguments[n++];
    std::memcpy(formals.data() + p.offset, top_->scratch.data() + a.offset, std::min(a.size, p.size));
  }
  if (callee->system_call != builtin::none) {
    call_system(block_, *callee, formals.data());
    return take_results(i, *callee, formals);
  }
  top_->pending = &i;
  enter(*callee);
  top_->formals = std::move(formals);
}

void interpreted_thread::take_results(const instruction& i, const function& callee,
                                      const std::vector<std::uint8_t>& formals) {
  std::size_t n = 0;
  for (const formal_parameter& p : callee.formals) {
    if (!p.is_result || n >= i.returns.size()) continue;
    const argument& r = i.returns[n++];
    std::memcpy(top_->scratch.data() + r.offset, formals.data() + p.offset, std::min(r.size, p.size));
  }
}

void interpreted_thread::leave() {
  const std::unique_ptr<interpreter::frame> done = std::move(stack_.back());
  stack_.pop_back();
  top_ = stack_.empty() ? nullptr : stack_.back().get();
  if (top_ != nullptr) take_results(*top_->pending, *done->what, done->formals);
}

}  // namespace hpe::ptx
