#include "runtime/ptx/compiler/regions.h"

#include <algorithm>
#include <cstddef>

#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

using llvm::Value;

region_emitter::region_emitter(module_context& shared, const flat_kernel& kernel)
    : shared_(shared),
      kernel_(kernel),
      flow_(kernel.code, kernel.registers.size()),
      loose_(kernel.code, kernel.registers.size()) {
  find_points();
  find_repeated();
  assign_slots();
  // A call may read ctaid.x from block_context, where the code around the call changes it. Nor do the blocks of a strip
  // have colours of their own in block_context (access_recording.h).
  table_.runs_strips = points_.size() == 1 && std::none_of(kernel.code.begin(), kernel.code.end(), [](const auto& i) {
                         const bool records_itself = i.kind == kind::texture && i.description != 0;
                         return i.kind == kind::call || i.has(modifier::recorded_order) || records_itself;
                       });
}

void region_emitter::emit() {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t point = 0; point < points_.size(); ++point) starts.push_back(first_block(point));
  if (shared_.lane_count > 1) {
    lanes_.emplace(shared_.lane_count, kernel_.code, kernel_.registers, flow_, starts);
    has_block_value_ = find_block_values(kernel_.code, kernel_.registers.size(), flow_);
  }
  for (std::uint32_t point = 0; point < points_.size(); ++point) emit_region(point);
}

void region_emitter::find_points() {
  points_.push_back(0);
  point_of_.resize(kernel_.code.size());
  for (std::uint32_t n = 0; n < kernel_.code.size(); ++n) {
    if (!is_meeting(kernel_.code[n])) continue;
    point_of_[n] = static_cast<std::uint32_t>(points_.size());
    points_.push_back(n);
  }
}

std::uint32_t region_emitter::first_block(std::uint32_t point) const {
  return point == 0 ? 0 : flow_.block_at(points_[point] + 1);
}

namespace {

bool is_cheap(const instruction& i) {
  if (i.guard.is_register() || i.results.size() != 1 || !i.results[0].is_register()) return false;
  if (!runs_in_lanes(i)) return false;
  if (i.kind == kind::load) return i.sources[0].what == operand::kind::formal;
  if (i.kind == kind::special) return static_cast<special_register>(i.sources[0].value) <= special_register::warpid;
  if (i.kind == kind::address_space) return i.op == opcode::cvta && window_of(i) == address_window::generic;
  if (i.kind != kind::pure) return false;
  switch (i.op) {
    case opcode::add:
    case opcode::sub:
    case opcode::mul:
    case opcode::mad: return !is_float(i.types[0]);
    case opcode::shl:
    case opcode::shr:
    case opcode::and_:
    case opcode::or_:
    case opcode::xor_:
    case opcode::mov: return true;
    case opcode::cvt: return !is_float(i.types[0]) && !is_float(i.second_type());
    case opcode::setp: return !is_float(i.types[0]);
    default: return false;
  }
}

}  // namespace

// Finds the registers that regions recompute after a meeting instead of storing them in the frame, such as indices,
// addresses and parameters. Only one instruction writes such a register; the instruction is cheap and reads only
// registers of this kind.
void region_emitter::find_repeated() {
  constexpr std::uint32_t most = 12;  // limits the number of instructions that recompute one register
  const std::size_t count = kernel_.registers.size();
  std::vector<std::uint32_t> writes(count);
  for (const instruction& i : kernel_.code)
    for (const operand& o : i.results)
      if (o.is_register()) ++writes[o.index];
  std::vector<std::uint32_t> cost(count);
  repeated_.assign(count, nullptr);
  for (bool changed = true; changed;) {
    changed = false;
    for (const instruction& i : kernel_.code) {
      if (!is_cheap(i)) continue;
      const std::uint32_t r = i.results[0].index;
      if (repeated_[r] != nullptr || writes[r] != 1 || flow_.alive_at(0).has(r)) continue;
      std::uint32_t sum = 1;
      for (const operand& o : i.sources)
        if (o.is_register()) sum += repeated_[o.index] == nullptr ? most : cost[o.index];
      if (sum > most) continue;
      cost[r] = sum;
      repeated_[r] = &i;
      changed = true;
    }
  }
}

// Emits the instructions that recompute `registers`.
void region_emitter::emit_repeated(emitter& e, const std::vector<std::uint32_t>& registers) {
  std::vector<bool> done(kernel_.registers.size());
  const auto emit = [&](const auto& self, std::uint32_t r) -> void {
    if (done[r]) return;
    done[r] = true;
    for (const operand& o : repeated_[r]->sources)
      if (o.is_register()) self(self, o.index);
    e.emit(*repeated_[r]);
  };
  for (const std::uint32_t r : registers)
    if (repeated_[r] != nullptr) emit(emit, r);
}

// Assigns a slot to each register that is live after a meeting, or that a meeting reads or writes.
void region_emitter::assign_slots() {
  table_.slot_of.assign(kernel_.registers.size(), meeting_table::no_slot);
  const auto need = [&](std::uint32_t r) {
    if (table_.slot_of[r] == meeting_table::no_slot) table_.slot_of[r] = table_.slots++;
  };
  table_.points.emplace_back();
  table_.is_passable.push_back(false);
  table_.positions = points_;
  for (std::size_t p = 1; p < points_.size(); ++p) {
    instruction what = kernel_.code[points_[p]];
    for (const std::uint32_t r : flow_.alive_at(flow_.block_at(points_[p] + 1)).members())
      if (repeated_[r] == nullptr) need(r);
    for (operand& o : what.sources) {
      if (!o.is_register()) continue;
      need(o.index);
      o.index = table_.slot_of[o.index];
    }
    for (operand& o : what.results) {
      if (!o.is_register()) continue;
      need(o.index);
      o.index = table_.slot_of[o.index];
    }
    table_.is_passable.push_back(is_passable(what));
    what.guard = {};
    table_.points.push_back(std::move(what));
  }
}

Value* region_emitter::frame_place(emitter& e, std::uint32_t r) {
  Value* const frame = e.member(offsetof(block_context, frame), e.at.getPtrTy());
  Value* const threads = e.member(offsetof(block_context, thread_count), e.at.getInt32Ty());
  Value* const before = e.at.CreateMul(e.at.CreateZExt(threads, e.at.getInt64Ty()), e.at.getInt64(table_.slot_of[r]));
  Value* const here = e.at.CreateGEP(e.at.getInt64Ty(), frame, before);
  return e.at.CreateGEP(e.at.getInt64Ty(), here, e.at.CreateZExt(e.thread, e.at.getInt64Ty()));
}

llvm::BasicBlock* region_emitter::target(emitter& e, std::uint32_t block) {
  if (emitted_[block] == nullptr) {
    emitted_[block] = llvm::BasicBlock::Create(e.at.getContext(), "", e.function());
    open_.push_back(block);
  }
  return emitted_[block];
}

// Returns the registers that the region must store in the frame before a meeting. The flag of a register is true if the
// meeting itself reads the register, so that the scheduler needs the canonical bits.
std::vector<std::pair<std::uint32_t, bool>> region_emitter::kept_at(std::uint32_t point) const {
  const instruction& what = kernel_.code[points_[point]];
  register_set kept(kernel_.registers.size());
  kept.unite(flow_.alive_at(first_block(point)));
  for (const operand& o : what.results)
    if (o.is_register()) kept.remove(o.index);
  std::vector<bool> shown(kernel_.registers.size());
  for (const operand& o : what.sources) {
    if (!o.is_register()) continue;
    kept.add(o.index);
    shown[o.index] = true;
  }
  std::vector<std::pair<std::uint32_t, bool>> result;
  for (const std::uint32_t r : kept.members())  // the slot of a register that the region does not write keeps the value
    if (shown[r] || (written_.has(r) && repeated_[r] == nullptr)) result.emplace_back(r, shown[r]);
  return result;
}

std::uint32_t region_emitter::point_after(std::uint32_t block) const {
  const std::uint32_t point = point_of_[flow_.blocks()[block].last - 1];
  return point != 0 ? point : block_context::ended;
}

// Emits code that stores the registers that the thread needs later, and continues with the next thread.
void region_emitter::emit_leave(emitter& e, std::uint32_t point) {
  for (const auto& [r, is_shown] : kept_at(point)) {
    Value* const bits =
        is_shown ? e.get({operand::kind::reg, false, r, 0}, bits_of(kernel_.registers[r])) : e.get_raw(r);
    e.own(e.at.CreateStore(e.at.CreateZExt(bits, e.at.getInt64Ty()), frame_place(e, r)));
  }
  leave_to(e, point);
}

void region_emitter::leave_to(emitter& e, std::uint32_t next) {
  outcomes_->addIncoming(e.at.getInt32(next), e.at.GetInsertBlock());
  e.at.CreateBr(latch_);
}

void region_emitter::emit_block(emitter& e, std::uint32_t block) {
  const basic_block& b = flow_.blocks()[block];
  llvm::LLVMContext& c = e.at.getContext();
  e.at.SetInsertPoint(emitted_[block]);
  const std::uint32_t last = b.last - 1;
  const instruction& i = kernel_.code[last];
  const std::uint32_t after = flow_.block_at(b.last);
  const bool has_after = after < flow_.blocks().size();
  const bool leaves = i.kind == kind::exit || i.kind == kind::ret || i.kind == kind::trap || point_of_[last] != 0;
  const bool falls_through = i.targets.empty() && !leaves;
  e.emit(std::span(kernel_.code).subspan(b.first, (falls_through ? b.last : last) - b.first));
  if (falls_through) {
    e.at.CreateBr(target(e, after));
    return;
  }
  if (i.guard.is_register()) {
    llvm::BasicBlock* const taken = llvm::BasicBlock::Create(c, "", e.function());
    e.at.CreateCondBr(e.condition(i.guard), taken, target(e, after));
    e.at.SetInsertPoint(taken);
  }
  if (i.kind == kind::branch) {
    e.at.CreateBr(target(e, flow_.block_at(i.targets[0])));
  } else if (i.kind == kind::branch_table) {
    llvm::BasicBlock* const wrong = llvm::BasicBlock::Create(c, "", e.function());
    llvm::SwitchInst* const choice = e.at.CreateSwitch(e.get(i.sources[0], 32), wrong);
    for (std::size_t n = 0; n < i.targets.size(); ++n)
      choice->addCase(e.at.getInt32(static_cast<std::uint32_t>(n)), target(e, flow_.block_at(i.targets[n])));
    e.at.SetInsertPoint(wrong);
    e.fail(static_cast<std::uint32_t>(trap::reason::illegal), e.at.getInt64(0), i);
    e.at.CreateUnreachable();
  } else if (i.kind == kind::trap) {
    e.set_member(offsetof(block_context, current), e.thread);
    e.fail(static_cast<std::uint32_t>(trap::reason::trap), e.at.getInt64(0), i);
    e.at.CreateUnreachable();
  } else if (i.op == opcode::handover && has_after) {
    e.at.CreateBr(target(e, after));
  } else if (i.op == opcode::pause && has_after) {
    // At a pause, a thread leaves the region only if the block's budget is used up.
    Value* const left =
        e.at.CreateSub(e.member(offsetof(block_context, budget), e.at.getInt32Ty(), false), e.at.getInt32(1));
    e.set_member(offsetof(block_context, budget), left);
    llvm::BasicBlock* const pause = llvm::BasicBlock::Create(c, "", e.function());
    e.at.CreateCondBr(e.at.CreateICmpSGT(left, e.at.getInt32(0)), target(e, after), pause);
    e.at.SetInsertPoint(pause);
    emit_leave(e, point_of_[last]);
  } else if (point_of_[last] != 0) {
    emit_leave(e, point_of_[last]);
  } else {
    leave_to(e, block_context::ended);
  }
}

// Finds the registers that the code of a region writes. At the kernel's entry (`everything`), all registers count as
// written, because the slots have no values.
void region_emitter::find_written(const lane_region& region, bool everything) {
  written_ = register_set(kernel_.registers.size());
  if (everything) {
    for (std::uint32_t r = 0; r < kernel_.registers.size(); ++r) written_.add(r);
    return;
  }
  std::vector<bool> seen(flow_.blocks().size());
  std::vector<std::uint32_t> open{region.first};
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    if (seen[block]) continue;
    seen[block] = true;
    const basic_block& b = flow_.blocks()[block];
    for (std::uint32_t n = b.first; n < b.last; ++n)
      for (const operand& o : kernel_.code[n].results)
        if (o.is_register() && (point_of_[n] == 0 || region.has_passage(kernel_.code[n]))) written_.add(o.index);
    const std::uint32_t meeting = point_of_[b.last - 1];
    const instruction& end = kernel_.code[b.last - 1];
    if (meeting == 0 || end.guard.is_register() || end.op == opcode::pause || end.op == opcode::handover ||
        region.has_passage(end))
      open.insert(open.end(), b.successors.begin(), b.successors.end());
  }
}

// Emits the function of a region. Code for several lanes contains no code for single threads; it calls the kernel's
// code for one lane instead.
void region_emitter::emit_region(std::uint32_t point) {
  llvm::LLVMContext& c = shared_.module.getContext();
  llvm::Type* const i32 = llvm::Type::getInt32Ty(c);
  llvm::FunctionType* const signature = llvm::FunctionType::get(i32, {llvm::PointerType::get(c, 0), i32, i32}, false);
  llvm::Function* const f = llvm::Function::Create(signature, llvm::Function::ExternalLinkage,
                                                   "region_" + std::to_string(point), shared_.module);
  f->setDoesNotThrow();
  // These attributes let LLVM read invariant members of the block and the parameters once, before the loop.
  f->addDereferenceableParamAttr(0, sizeof(block_context));
  f->addParamAttr(0, llvm::Attribute::getWithAlignment(c, llvm::Align(alignof(block_context))));
  llvm::BasicBlock::Create(c, "entry", f);
  if (lanes_ && lanes_->region(point).is_possible && lanes_->pays(lanes_->region(point), shared_.has_fast_gathers))
    return emit_lane_loop(f, point);
  emitter e(shared_, f, kernel_.code, kernel_.registers, loose_);
  e.context = f->getArg(0);
  if (!lanes_) return emit_alone(e, point);
  e.at.SetInsertPoint(&f->getEntryBlock());
  e.at.CreateRet(emit_rest_alone(e, point, f->getArg(1), e.at.getInt32(helpers::no_outcome)));
}

// Emits the load of the address of the kernel's parameters at the beginning of a region.
Value* region_emitter::emit_parameters(emitter& e) const {
  Value* const parameters = e.member(offsetof(block_context, parameters), e.at.getPtrTy());
  const auto say = [&](unsigned what, std::uint64_t value) {
    llvm::cast<llvm::Instruction>(parameters)
        ->setMetadata(what,
                      llvm::MDNode::get(e.at.getContext(), {llvm::ConstantAsMetadata::get(e.at.getInt64(value))}));
  };
  say(llvm::LLVMContext::MD_dereferenceable, kernel_.origin->formals_size);
  say(llvm::LLVMContext::MD_align, parameter_alignment);
  return parameters;
}

// A region whose kernel allows it runs a strip of blocks (execution_engine::run_strip): the loop over the threads of a
// row is inside a loop over blocks. begin_strip() emits the indices of the first and the last block.
void region_emitter::begin_strip(emitter& e) {
  strip_ = {};
  if (!table_.runs_strips) return;
  strip_.first = e.member(offsetof(block_context, ctaid.x), e.at.getInt32Ty(), false);
  Value* const count = e.member(offsetof(block_context, strip), e.at.getInt32Ty(), false);
  strip_.last = e.at.CreateAdd(strip_.first, e.at.CreateSub(count, e.at.getInt32(1)));
}

// Emits the index of the running block, at the beginning of the loop over threads. `before`: the block that leads into
// the loop.
void region_emitter::begin_block_of_strip(emitter& e, llvm::BasicBlock* before) {
  if (!table_.runs_strips) return;
  strip_.now = e.at.CreatePHI(e.at.getInt32Ty(), 2);
  strip_.now->addIncoming(strip_.first, before);
  e.block_x = strip_.now;
}

// Emits the end of the loop over threads. `next`: the thread that follows in the row; `goes_on`: whether the loop runs
// it. Otherwise the loop goes on with the first thread of the next block, if there is one. Both are one loop, because
// LLVM drops the note that a load is invariant when it moves the load out of an inner loop. Returns whether the loop
// goes on, and the thread.
std::pair<Value*, Value*> region_emitter::end_block_of_strip(emitter& e, Value* next, Value* goes_on) {
  if (!table_.runs_strips) return {goes_on, next};
  Value* const has_next_block = e.at.CreateICmpNE(strip_.now, strip_.last);
  Value* const x = e.at.CreateSelect(goes_on, strip_.now, e.at.CreateAdd(strip_.now, e.at.getInt32(1)));
  strip_.now->addIncoming(x, e.at.GetInsertBlock());
  return {e.at.CreateOr(goes_on, has_next_block), e.at.CreateSelect(goes_on, next, e.function()->getArg(1))};
}

// Emits stores of the running thread and block to `block_context`. The stores are volatile, because the page-fault
// handler reads the values.
void region_emitter::store_position(emitter& e) {
  const auto store = [&](Value* value, std::size_t offset) {
    e.own(e.at.CreateStore(value, e.at.CreateConstGEP1_64(e.at.getInt8Ty(), e.context, offset), true));
  };
  store(e.thread, offsetof(block_context, current));
  if (e.block_x != nullptr) store(e.block_x, offsetof(block_context, ctaid.x));
}

// Emits the loop of a region over single threads.
void region_emitter::emit_alone(emitter& e, std::uint32_t point) {
  llvm::LLVMContext& c = shared_.module.getContext();
  llvm::Type* const i32 = llvm::Type::getInt32Ty(c);
  llvm::Function* const f = e.function();
  llvm::BasicBlock* const entry = &f->getEntryBlock();
  llvm::BasicBlock* const body = llvm::BasicBlock::Create(c, "thread", f);
  llvm::BasicBlock* const start = llvm::BasicBlock::Create(c, "start", f);
  latch_ = llvm::BasicBlock::Create(c, "latch", f);
  outcomes_ = llvm::PHINode::Create(i32, 4, "", latch_);
  llvm::BasicBlock* const done = llvm::BasicBlock::Create(c, "done", f);
  e.formals_are_invariant = true;
  e.local_size = kernel_.local_size + (kernel_.scratch_is_local ? kernel_.scratch_size + 64 : 0);

  e.at.SetInsertPoint(entry);
  e.formals = emit_parameters(e);
  begin_strip(e);
  e.at.CreateBr(body);
  e.at.SetInsertPoint(body);
  llvm::PHINode* const thread = e.at.CreatePHI(i32, 2);
  thread->addIncoming(f->getArg(1), entry);
  e.thread = thread;
  begin_block_of_strip(e, entry);
  store_position(e);
  llvm::BasicBlock* const prepared = body;
  Value* const local =
      e.at.CreatePtrToInt(e.member(offsetof(block_context, local), e.at.getPtrTy()), e.at.getInt64Ty());
  Value* const stride = e.member(offsetof(block_context, local_stride), e.at.getInt64Ty());
  e.local = e.known_aligned(e.at.CreateAdd(local, e.at.CreateMul(stride, e.at.CreateZExt(thread, e.at.getInt64Ty()))));
  e.local_end = e.at.CreateSub(e.at.CreateAdd(e.local, stride), e.at.getInt64(64));
  if (kernel_.scratch_is_local) {
    e.scratch = e.at.CreateIntToPtr(e.at.CreateAdd(e.local, e.at.getInt64((kernel_.local_size + 63) / 64 * 64)),
                                    e.at.getPtrTy());
  } else {
    e.scratch = e.allocate(llvm::ArrayType::get(e.at.getInt8Ty(), std::max(kernel_.scratch_size, 16U)), 16);
  }

  emitted_.assign(flow_.blocks().size(), nullptr);
  open_.clear();
  const std::uint32_t first = first_block(point);
  lane_region alone_only;
  alone_only.first = first;
  find_written(alone_only, point == 0);
  llvm::BasicBlock* const from = target(e, first);
  while (!open_.empty()) {
    const std::uint32_t block = open_.back();
    open_.pop_back();
    emit_block(e, block);
  }

  // Only here is the set of used registers known. Live registers get their values from the frame, and all other
  // registers begin as zero.
  e.at.SetInsertPoint(start);
  std::vector<std::pair<std::uint32_t, Value*>> restored;
  if (point != 0) {
    for (const std::uint32_t r : flow_.alive_at(first).members())
      if (repeated_[r] == nullptr)
        restored.emplace_back(
            r, e.at.CreateTrunc(e.own(e.at.CreateLoad(e.at.getInt64Ty(), frame_place(e, r))), e.type_of(r)));
  }
  llvm::BasicBlock* const repeat = llvm::BasicBlock::Create(c, "", f);
  e.at.SetInsertPoint(repeat);
  if (point != 0) emit_repeated(e, flow_.alive_at(first).members());
  e.at.CreateBr(from);
  e.at.SetInsertPoint(start);
  e.clear_registers();
  for (const auto& [r, value] : restored) e.set_raw(r, value);
  e.at.CreateBr(repeat);
  e.at.SetInsertPoint(prepared);
  e.at.CreateBr(start);

  // If all threads continue at the same point, the region returns that point. Otherwise each thread stores its own
  // point, and the loop compares the points of all threads.
  e.at.SetInsertPoint(latch_);
  Value* result = outcomes_->hasConstantValue();
  if (result == nullptr) {
    e.at.SetInsertPoint(body, body->begin());
    llvm::PHINode* const before = e.at.CreatePHI(i32, 2);
    before->addIncoming(e.at.getInt32(helpers::no_outcome), entry);
    e.at.SetInsertPoint(latch_);
    Value* const places = e.member(offsetof(block_context, next), e.at.getPtrTy());
    e.own(e.at.CreateStore(outcomes_, e.at.CreateGEP(i32, places, e.at.CreateZExt(thread, e.at.getInt64Ty()))));
    Value* const same = e.at.CreateOr(e.at.CreateICmpEQ(before, outcomes_),
                                      e.at.CreateICmpEQ(before, e.at.getInt32(helpers::no_outcome)));
    result = e.at.CreateSelect(same, outcomes_, e.at.getInt32(block_context::mixed));
    before->addIncoming(result, latch_);
  }
  Value* const next = e.at.CreateAdd(thread, e.at.getInt32(1));
  const auto [goes_on, following] = end_block_of_strip(e, next, e.at.CreateICmpULT(next, f->getArg(2)));
  thread->addIncoming(following, latch_);
  e.at.CreateCondBr(goes_on, body, done);
  e.at.SetInsertPoint(done);
  e.at.CreateRet(result);
}

}  // namespace hpe::ptx
