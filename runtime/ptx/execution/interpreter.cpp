#include "runtime/ptx/execution/interpreter.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstring>
#include <utility>

#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/execution/calls/system_call.h"
#include "runtime/ptx/execution/interpreted_thread.h"
#include "runtime/ptx/execution/textures/texture_access.h"
#include "runtime/ptx/program/routine.h"

namespace hpe::ptx {

interpreter::interpreter(const program& p, ptx::instruction_observer* observer)
    : program_(p), observer_(observer), points_(1, nullptr) {
  for (const auto& f : p.functions) number(*f);
}

interpreter::interpreter(const program& p, const function& kernel, work_meter& meter)
    : program_(p), observer_(nullptr), own_kernel_(&kernel), meter_(&meter), points_(1, nullptr) {
  number(kernel);
}

void interpreter::number(const function& f) {
  std::vector<std::uint32_t>& numbers = numbers_[&f];
  for (const instruction& i : f.code) {
    const bool meets =
        i.kind == kind::warp || i.kind == kind::barrier || i.kind == kind::matrix || i.kind == kind::pause;
    numbers.push_back(meets ? static_cast<std::uint32_t>(points_.size()) : 0);
    if (meets) points_.push_back(&i);
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
  std::uint64_t executed = 0;  // since the last report to the meter
  const auto report = [&] {
    if (interpreter_.meter_ != nullptr) interpreter_.meter_->add(std::exchange(executed, 0));
  };
  while (top_ != nullptr) {
    ++executed;
    const std::uint32_t position = top_->position++;
    const instruction& i = top_->what->code[position];
    const bool runs = !i.guard.is_register() || value(i.guard) != 0;
    if (interpreter_.observer_ != nullptr)
      interpreter_.observer_->comes_to(block_, number_, *top_->what, position, top_->registers.data(), runs);
    if (!runs) continue;
    if (const std::uint32_t point = top_->numbers[position]; point != 0) {
      if (i.op == opcode::pause && --block_.budget > 0) continue;
      report();
      if (i.op == opcode::handover && !interpreter_.meter_->is_exceeded()) continue;
      block_.bases[number_] = top_->registers.data();
      block_.next[number_] = point;
      return;
    }
    execute(i);
  }
  report();
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
  if (i.sources.size() < 4) operands[3] = i.description;
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
    case kind::fence:
      if (!i.has(modifier::recorded_order)) return __atomic_thread_fence(__ATOMIC_SEQ_CST);
      block_.record_colour = ordered_colour * block_.configuration->image->program().recorded.colour_stride;
      return;
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

// ---- memory accesses ------------------------------------------------------------------------------------------------

namespace {

// As on a GPU, a single access is atomic: threads of other blocks never see a partly written value.
std::uint64_t read(const std::uint8_t* at, unsigned bytes) {
  switch (bytes) {
    case 1: return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    case 2: return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(at), __ATOMIC_ACQUIRE);
    case 4: return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
    default: return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
  }
}

void write(std::uint8_t* at, unsigned bytes, std::uint64_t value) {
  switch (bytes) {
    case 1: return __atomic_store_n(at, static_cast<std::uint8_t>(value), __ATOMIC_RELEASE);
    case 2:
      return __atomic_store_n(reinterpret_cast<std::uint16_t*>(at), static_cast<std::uint16_t>(value),
                              __ATOMIC_RELEASE);
    case 4:
      return __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(value),
                              __ATOMIC_RELEASE);
    default: return __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), value, __ATOMIC_RELEASE);
  }
}

std::uint64_t sign_extended(std::uint64_t value, type t) {
  if (!is_signed(t)) return value;
  const unsigned cut = 64 - bits_of(t);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << cut) >> cut);
}

bool is_param(const instruction& i) {
  return i.has(modifier::param) || i.has(modifier::param_entry) || i.has(modifier::param_func);
}

}  // namespace

std::uint8_t* interpreted_thread::checked(address_window window, std::uint64_t address, std::uint64_t bytes,
                                          std::uint64_t alignment) {
  std::uint8_t* const memory = reach(block_, number_, window, address, bytes);
  // As on a GPU, the check of the alignment precedes the check of the access rights.
  if (address % alignment != 0)
    fail(trap::reason::misaligned, memory == nullptr ? address : reinterpret_cast<std::uint64_t>(memory));
  if (memory == nullptr) {
    if (window == address_window::own_shared)
      address = reinterpret_cast<std::uint64_t>(block_.shared) +
                static_cast<std::uint64_t>(static_cast<std::int32_t>(address));
    fail(trap::reason::address, address);
  }
  return memory;
}

std::uint8_t* interpreted_thread::checked(const instruction& i, const operand& where, std::uint64_t bytes,
                                          std::uint64_t alignment) {
  const std::uint64_t at = address(where);
  if (where.what == operand::kind::formal || where.what == operand::kind::scratch)
    return reinterpret_cast<std::uint8_t*>(at);
  if (is_param(i)) return reinterpret_cast<std::uint8_t*>(at);
  return checked(window_of(i), at, bytes, alignment);
}

// Reports an access to the race finder, if there is one. `value` points to the bytes that a write stores.
void interpreted_thread::touch(const instruction& i, const std::uint8_t* at, std::uint64_t bytes, memory_use how,
                               const void* value) {
  if (block_.races == nullptr) return;
  const bool is_strong =
      i.modifiers.one_of(modifier::relaxed, modifier::acquire, modifier::release, modifier::mmio) != modifier::count;
  block_.races->touch(block_, number_, i, at, bytes, is_strong ? memory_use::atomic : how, value);
}

void interpreted_thread::touch_fragment(const instruction& i, const std::uint8_t* matrix, std::uint64_t stride,
                                        memory_use how) {
  if (block_.races == nullptr) return;
  const unsigned bytes = bytes_of(part_of(i, *matrix_shape_of(i)).element);
  for (const std::uint64_t offset : fragment_offsets(i, number_ % 32, stride)) touch(i, matrix + offset, bytes, how);
}

// Reports cp.async.commit_group, cp.async.wait_group and cp.async.wait_all to the race finder.
void interpreted_thread::order_copies(const instruction& i) {
  if (i.has(modifier::commit_group) || i.has(modifier::wait_all)) block_.races->commit_copies(block_, number_);
  if (i.has(modifier::wait_all)) block_.races->wait_for_copies(block_, number_, 0);
  if (i.has(modifier::wait_group) && !i.has(modifier::bulk))
    block_.races->wait_for_copies(block_, number_, static_cast<std::uint32_t>(value(i.sources[0])));
}

void interpreted_thread::load(const instruction& i) {
  if (i.op == opcode::wmma) {
    std::uint64_t registers[8] = {};
    const std::uint64_t stride = value(i.sources[1]);
    const std::uint8_t* const matrix = checked(i, i.sources[0], fragment_bytes(i, stride), 1);
    touch_fragment(i, matrix, stride, memory_use::read);
    record_fragment(block_, i, number_ % 32, matrix, stride);
    load_fragment(i, number_ % 32, matrix, stride, registers);
    for (std::size_t n = 0; n < i.results.size(); ++n) set(i.results[n], registers[n]);
    return;
  }
  const unsigned bytes = bytes_of(i.types[0]);
  if (is_record(i)) {
    const std::uint8_t* const record = record_of(i);
    return set(i.results[0], record != nullptr ? read(record, bytes) : 0);
  }
  const std::uint8_t* const at =
      checked(i, i.sources[0], std::uint64_t{bytes} * i.vector, std::uint64_t{bytes} * i.vector);
  touch(i, at, std::uint64_t{bytes} * i.vector, memory_use::read);
  std::uint64_t values[8];
  for (unsigned n = 0; n < i.vector; ++n)
    values[n] = sign_extended(read(at + std::size_t{n} * bytes, bytes), i.types[0]);
  for (unsigned n = 0; n < i.vector; ++n) set(i.results[n], values[n]);
}

// Returns the place of a load or store of the record (is_record); null if the address is not recorded.
std::uint8_t* interpreted_thread::record_of(const instruction& i) const {
  const recorded_addresses& recorded = block_.configuration->image->program().recorded;
  const std::uint64_t at = address(i.sources[0]);
  if (at - recorded.base >= recorded.size) return nullptr;
  const bool is_first = i.has(modifier::recorded_colour_0), is_second = i.has(modifier::recorded_colour_1);
  std::uint64_t colour = block_.record_colour;
  if ((is_first || is_second) && colour == ordered_colour * recorded.colour_stride)
    colour = is_first ? 0 : recorded.colour_stride;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  return reinterpret_cast<std::uint8_t*>((at >> record_shift(i)) + i.description + colour);
}

void interpreted_thread::store(const instruction& i) {
  if (i.op == opcode::wmma) {
    std::uint64_t registers[8] = {};
    for (std::size_t n = 2; n < i.sources.size(); ++n) registers[n - 2] = value(i.sources[n]);
    const std::uint64_t stride = value(i.sources[1]);
    std::uint8_t* const matrix = checked(i, i.sources[0], fragment_bytes(i, stride), 1);
    touch_fragment(i, matrix, stride, memory_use::write);
    record_fragment(block_, i, number_ % 32, matrix, stride);
    return store_fragment(i, number_ % 32, matrix, stride, registers);
  }
  const unsigned bytes = bytes_of(i.types[0]);
  if (is_record(i)) {
    if (std::uint8_t* const at = record_of(i); at != nullptr) write(at, bytes, i.sources[1].value);
    return;
  }
  std::uint8_t* const at = checked(i, i.sources[0], std::uint64_t{bytes} * i.vector, std::uint64_t{bytes} * i.vector);
  if (block_.races != nullptr) {
    std::uint8_t stored[64];
    for (unsigned n = 0; n < i.vector; ++n) {
      const std::uint64_t element = value(i.sources[1 + n]);
      std::memcpy(stored + std::size_t{n} * bytes, &element, bytes);
    }
    touch(i, at, std::uint64_t{bytes} * i.vector, memory_use::write, stored);
  }
  for (unsigned n = 0; n < i.vector; ++n) write(at + std::size_t{n} * bytes, bytes, value(i.sources[1 + n]));
}

void interpreted_thread::update(const instruction& i) {
  const unsigned bytes = bytes_of(i.types[0]);
  std::uint8_t* const at = checked(i, i.sources[0], bytes, bytes);
  touch(i, at, bytes, memory_use::atomic);
  const std::uint64_t old = i.atomic(at, value(i.sources[1]), i.sources.size() > 2 ? value(i.sources[2]) : 0);
  if (!i.results.empty()) set(i.results[0], old);
}

// Executes cp.async. The bytes after the given source size become zero.
void interpreted_thread::copy(const instruction& i) {
  const std::uint64_t size = value(i.sources[2]);
  const std::uint64_t given = i.sources.size() > 3 ? std::min(value(i.sources[3]), size) : size;
  std::uint8_t* const to = checked(address_window::own_shared, address(i.sources[0]), size, size);
  const std::uint8_t* const from =
      checked(address_window::generic, address(i.sources[1]), given, given == 0 ? 1 : size);
  touch(i, to, size, memory_use::asynchronous_copy, given == size ? from : nullptr);
  std::memcpy(to, from, given);
  std::memset(to + given, 0, size - given);
}

}  // namespace hpe::ptx
