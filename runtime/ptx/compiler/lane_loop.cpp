// The loop of a region (regions.h) over groups of threads that run in lanes (lanes.h). The kernel's code for one lane
// runs all other threads one by one: threads that do not fill a group, and threads whose registers do not have the
// expected shapes.

#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/compiler/regions.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

llvm::FixedVectorType* of_lanes(const emitter& e, llvm::Type* t) {
  return llvm::FixedVectorType::get(t, e.lane_count());
}

Value* full_mask(emitter& e) { return llvm::Constant::getAllOnesValue(of_lanes(e, e.at.getInt1Ty())); }

}  // namespace

std::vector<std::uint32_t> region_emitter::block_values_at(std::uint32_t point) const {
  std::vector<std::uint32_t> result;
  if (point == 0 || !is_block_barrier(kernel_.code[points_[point]])) return result;
  for (const std::uint32_t r : flow_.alive_at(first_block(point)).members())
    if (has_block_value_[r] && repeated_[r] == nullptr && lanes_->shape_of(r).is_uniform()) result.push_back(r);
  return result;
}

// Emits a test of whether threads can run in groups. The threads of a group must have consecutive indices in x, and the
// same indices in y and z. If the code relies on registers with the same value in the whole block, all threads of the
// block must run.
Value* region_emitter::can_group(emitter& e, llvm::Function* f, std::uint32_t point) {
  const unsigned lane_count = lanes_->count();
  Value* const width = e.member(offsetof(block_context, ntid.x), e.at.getInt32Ty());
  Value* const rest = e.at.CreateAnd(e.at.CreateOr(width, f->getArg(1)), e.at.getInt32(lane_count - 1));
  Value* const enough = e.at.CreateICmpUGE(e.at.CreateSub(f->getArg(2), f->getArg(1)), e.at.getInt32(lane_count));
  Value* const allowed =
      e.at.CreateICmpNE(e.member(offsetof(block_context, may_group), e.at.getInt32Ty(), false), e.at.getInt32(0));
  Value* const can = e.at.CreateAnd(e.at.CreateAnd(e.at.CreateICmpEQ(rest, e.at.getInt32(0)), enough), allowed);
  if (block_values_at(point).empty()) return can;
  Value* const threads = e.member(offsetof(block_context, thread_count), e.at.getInt32Ty());
  Value* const come = e.at.CreateSub(f->getArg(2), f->getArg(1));
  return e.at.CreateAnd(can, e.at.CreateICmpEQ(come, threads));
}

void region_emitter::emit_lane_loop(llvm::Function* f, std::uint32_t point) {
  llvm::LLVMContext& c = shared_.module.getContext();
  llvm::Type* const i32 = llvm::Type::getInt32Ty(c);
  const lane_region& region = lanes_->region(point);
  find_written(region, point == 0);
  emitter e(shared_, f, kernel_.code, kernel_.registers, loose_);
  e.lanes = &*lanes_;
  e.context = f->getArg(0);
  e.formals_are_invariant = true;
  llvm::BasicBlock* const prepare = llvm::BasicBlock::Create(c, "", f);
  llvm::BasicBlock* const body = llvm::BasicBlock::Create(c, "group", f);
  llvm::BasicBlock* const start = llvm::BasicBlock::Create(c, "", f);
  llvm::BasicBlock* const repeat = llvm::BasicBlock::Create(c, "", f);
  latch_ = llvm::BasicBlock::Create(c, "group_latch", f);
  together_outcome_ = llvm::PHINode::Create(i32, 4, "", llvm::BasicBlock::Create(c, "group_together", f));
  llvm::BasicBlock* const others = llvm::BasicBlock::Create(c, "others", f);
  llvm::BasicBlock* const done = llvm::BasicBlock::Create(c, "done", f);
  llvm::PHINode* const outcome = llvm::PHINode::Create(i32, 2, "", done);

  e.at.SetInsertPoint(&f->getEntryBlock());
  e.formals = emit_parameters(e);
  e.at.CreateCondBr(can_group(e, f, point), prepare, others);

  // Loads the values of the whole block first, before threads store registers for the next meeting.
  e.at.SetInsertPoint(prepare);
  e.thread = f->getArg(1);
  std::map<std::uint32_t, Value*> known;
  for (const std::uint32_t r : block_values_at(point))
    known[r] = e.splat(e.own(e.at.CreateLoad(e.at.getInt64Ty(), frame_place(e, r))));
  begin_strip(e);
  e.at.CreateBr(body);

  e.at.SetInsertPoint(body);
  llvm::PHINode* const thread = e.at.CreatePHI(i32, 2);
  llvm::PHINode* const before = e.at.CreatePHI(i32, 2);
  thread->addIncoming(f->getArg(1), prepare);
  before->addIncoming(e.at.getInt32(helpers::no_outcome), prepare);
  e.thread = thread;
  begin_block_of_strip(e, prepare);
  store_position(e);
  e.at.CreateBr(start);
  loop_ = {thread, f->getArg(2), before, done, outcome};
  idle_.reset();
  if (point != 0 && is_block_barrier(kernel_.code[points_[point]]))
    idle_.emplace(kernel_.code, flow_, has_block_value_, region);

  lane_blocks_.assign(flow_.blocks().size(), nullptr);
  waiting_.assign(flow_.blocks().size(), nullptr);
  for (const std::uint32_t block : region.order) {
    lane_blocks_[block] = llvm::BasicBlock::Create(c, "", f);
    waiting_[block] = e.allocate(of_lanes(e, e.at.getInt1Ty()), 8);
  }
  lane_outcomes_ = e.allocate(of_lanes(e, i32), 64);
  for (const std::uint32_t block : region.order) emit_block_in_lanes(e, region, block);

  e.at.SetInsertPoint(repeat);
  if (point != 0) emit_repeated(e, flow_.alive_at(region.first).members());
  e.at.CreateBr(lane_blocks_[region.first]);

  e.at.SetInsertPoint(start);
  for (const std::uint32_t block : region.order)
    e.at.CreateStore(llvm::Constant::getNullValue(of_lanes(e, e.at.getInt1Ty())), waiting_[block]);
  e.at.CreateStore(llvm::Constant::getNullValue(of_lanes(e, i32)), lane_outcomes_);
  Value* const fits = restore_in_lanes(e, point, known);
  llvm::BasicBlock* const restored = e.at.GetInsertBlock();
  e.at.CreateCondBr(fits, repeat, others);

  Value* const result = emit_lane_outcome(e, f->getArg(1), thread, before, only_outcome_of(e, region));
  llvm::BasicBlock* const left_region = e.at.GetInsertBlock();
  Value* const next = e.at.CreateAdd(thread, e.at.getInt32(e.lane_count()));
  Value* const left = e.at.CreateSub(f->getArg(2), next);
  llvm::BasicBlock* const ended = llvm::BasicBlock::Create(c, "", f);
  // A row of a strip consists of groups, because otherwise all its threads run one by one (can_group).
  const auto [goes_on, following] =
      end_block_of_strip(e, next, e.at.CreateICmpUGE(left, e.at.getInt32(e.lane_count())));
  e.at.CreateCondBr(goes_on, body, ended);
  thread->addIncoming(following, left_region);
  before->addIncoming(result, left_region);
  e.at.SetInsertPoint(ended);
  e.at.CreateCondBr(e.at.CreateICmpEQ(left, e.at.getInt32(0)), done, others);
  outcome->addIncoming(result, ended);

  e.at.SetInsertPoint(others);
  llvm::PHINode* const first_other = e.at.CreatePHI(i32, 3);
  llvm::PHINode* const outcome_before = e.at.CreatePHI(i32, 3);
  first_other->addIncoming(f->getArg(1), &f->getEntryBlock());
  outcome_before->addIncoming(e.at.getInt32(helpers::no_outcome), &f->getEntryBlock());
  first_other->addIncoming(thread, restored);
  outcome_before->addIncoming(before, restored);
  first_other->addIncoming(next, ended);
  outcome_before->addIncoming(result, ended);
  Value* const of_all = emit_rest_alone(e, point, first_other, outcome_before);
  outcome->addIncoming(of_all, others);
  e.at.CreateBr(done);
  e.at.SetInsertPoint(done);
  e.at.CreateRet(outcome);
}

// Emits code that runs the threads from `first` on one by one. Returns the outcome of all threads of the range.
Value* region_emitter::emit_rest_alone(emitter& e, std::uint32_t point, Value* first, Value* before) {
  llvm::Function* const f = e.function();
  llvm::Constant* const own = shared_.module.getOrInsertGlobal(
      llvm::StringRef(link_names::own_kernel.data(), link_names::own_kernel.size()), e.at.getInt8Ty());
  return e.call(reinterpret_cast<const void*>(helpers::run_alone), e.at.getInt32Ty(),
                {e.context, e.at.getInt32(point), f->getArg(1), first, f->getArg(2), before, own});
}

// Returns the point at which all lanes continue after a region; null if there may be several such points.
llvm::ConstantInt* region_emitter::only_outcome_of(emitter& e, const lane_region& region) const {
  std::optional<std::uint32_t> only;
  for (const std::uint32_t block : region.order) {
    const instruction& end = kernel_.code[flow_.blocks()[block].last - 1];
    if (end.kind != kind::exit && end.kind != kind::ret && !is_meeting(end)) continue;
    if (only && *only != point_after(block)) return nullptr;
    only = point_after(block);
  }
  return only ? e.at.getInt32(*only) : nullptr;
}

// Emits the outcome of all groups up to the current group: their common point, or mixed. Groups write block.next only
// after outcomes have differed, because in many regions these writes would take most of a group's time.
Value* region_emitter::emit_lane_outcome(emitter& e, Value* first, Value* thread, Value* before,
                                         llvm::ConstantInt* only_outcome) {
  llvm::LLVMContext& c = e.at.getContext();
  llvm::Type* const i32 = e.at.getInt32Ty();
  llvm::BasicBlock* const together = together_outcome_->getParent();
  e.at.SetInsertPoint(latch_);
  if (only_outcome != nullptr) {
    together_outcome_->addIncoming(only_outcome, latch_);
    e.at.CreateBr(together);
    e.at.SetInsertPoint(together);
    return only_outcome;
  }
  llvm::BasicBlock* const other = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const mixed = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", e.function());
  Value* const outcomes = e.at.CreateLoad(of_lanes(e, i32), lane_outcomes_);
  Value* const of_first = e.at.CreateExtractElement(outcomes, std::uint64_t{0});
  e.at.CreateCondBr(e.all(e.at.CreateICmpEQ(outcomes, e.splat(of_first))), together, mixed);
  together_outcome_->addIncoming(of_first, latch_);

  e.at.SetInsertPoint(together);
  e.at.CreateCondBr(e.at.CreateICmpEQ(before, together_outcome_), rest, other,
                    llvm::MDBuilder(c).createBranchWeights(16, 1));
  e.at.SetInsertPoint(other);
  Value* const of_group = e.splat(together_outcome_);
  e.at.CreateCondBr(e.at.CreateICmpEQ(before, e.at.getInt32(helpers::no_outcome)), rest, mixed);

  e.at.SetInsertPoint(mixed);
  llvm::PHINode* const of_lane = e.at.CreatePHI(of_lanes(e, i32), 2);
  of_lane->addIncoming(outcomes, latch_);
  of_lane->addIncoming(of_group, other);
  llvm::BasicBlock* const was_mixed = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const was_point = llvm::BasicBlock::Create(c, "", e.function());
  e.at.CreateCondBr(e.at.CreateICmpEQ(before, e.at.getInt32(block_context::mixed)), was_mixed, was_point);
  e.at.SetInsertPoint(was_point);
  e.call(reinterpret_cast<const void*>(helpers::set_next), e.at.getVoidTy(), {e.context, first, thread, before});
  e.at.CreateBr(was_mixed);
  e.at.SetInsertPoint(was_mixed);
  Value* const places = e.member(offsetof(block_context, next), e.at.getPtrTy());
  e.own(e.at.CreateAlignedStore(of_lane, e.at.CreateGEP(i32, places, e.at.CreateZExt(thread, e.at.getInt64Ty())),
                                llvm::Align(4)));
  e.at.CreateBr(rest);

  e.at.SetInsertPoint(rest);
  llvm::PHINode* const result = e.at.CreatePHI(i32, 3);
  result->addIncoming(together_outcome_, together);
  result->addIncoming(together_outcome_, other);
  result->addIncoming(e.at.getInt32(block_context::mixed), was_mixed);
  return result;
}

// Emits code that sets registers to the values in `known`, and loads all other registers from the frame. Returns an i1:
// whether the registers have their shapes. The result may be false if threads come from different iterations of a loop.
Value* region_emitter::restore_in_lanes(emitter& e, std::uint32_t point, const std::map<std::uint32_t, Value*>& known) {
  std::vector<std::pair<std::uint32_t, Value*>> restored(known.begin(), known.end());
  if (point != 0)
    for (const std::uint32_t r : flow_.alive_at(first_block(point)).members())
      if (repeated_[r] == nullptr && !known.contains(r))
        restored.emplace_back(
            r, e.own(e.at.CreateAlignedLoad(of_lanes(e, e.at.getInt64Ty()), frame_place(e, r), llvm::Align(8))));
  e.clear_registers();
  Value* fits = e.at.getTrue();
  for (const auto& [r, values] : restored) fits = e.at.CreateAnd(fits, e.restore(r, values));
  return fits;
}

void region_emitter::emit_block_in_lanes(emitter& e, const lane_region& region, std::uint32_t block) {
  const basic_block& b = flow_.blocks()[block];
  const std::uint32_t last = b.last - 1;
  const instruction& end = kernel_.code[last];
  e.at.SetInsertPoint(lane_blocks_[block]);
  Value* mask = nullptr;
  register_set kept(kernel_.registers.size());
  if (!region.waiting[block].empty()) {
    mask = e.at.CreateLoad(of_lanes(e, e.at.getInt1Ty()), waiting_[block]);
    e.at.CreateStore(llvm::Constant::getNullValue(mask->getType()), waiting_[block]);
    for (const std::uint32_t other : region.waiting[block])
      if (other != lane_region::gone) kept.unite(flow_.alive_at(other));
  }
  e.mask = mask;
  e.kept = &kept;
  const bool is_branch =
      end.kind == kind::branch || end.kind == kind::exit || end.kind == kind::ret || point_of_[last] != 0;
  e.emit_in_lanes(std::span(kernel_.code).subspan(b.first, (is_branch ? last : b.last) - b.first),
                  [&] { emit_end_in_lanes(e, region, block); });
  e.mask = nullptr;
  e.kept = nullptr;
}

// Emits the branch of the lanes of e.mask to the successors of a block.
void region_emitter::emit_end_in_lanes(emitter& e, const lane_region& region, std::uint32_t block) {
  const basic_block& b = flow_.blocks()[block];
  const instruction& end = kernel_.code[b.last - 1];
  if (region.has_passage(end)) return emit_passage(e, region, block);
  const bool is_uniform = lanes_->shape_of(end.guard).is_uniform();
  const auto outcomes = outcomes_of(region, flow_, kernel_.code, block, is_uniform);
  if (outcomes.size() == 1 && outcomes[0].size() == 1) {
    send(e, region, block, *outcomes[0].begin(), e.mask);
    go_on(e, region, block, outcomes[0]);
  } else if (outcomes.size() == 2) {  // all lanes jump, or no lane does
    llvm::BasicBlock* const ways[] = {llvm::BasicBlock::Create(e.at.getContext(), "", e.function()),
                                      llvm::BasicBlock::Create(e.at.getContext(), "", e.function())};
    e.at.CreateCondBr(e.condition(end.guard), ways[0], ways[1]);
    for (std::size_t n = 0; n < 2; ++n) {
      e.at.SetInsertPoint(ways[n]);
      emit_idle_rest(e, block, *outcomes[n].begin(), n == 0);
      send(e, region, block, *outcomes[n].begin(), e.mask);
      go_on(e, region, block, outcomes[n]);
    }
  } else {
    const std::uint32_t after = flow_.block_at(b.last);
    const std::uint32_t taken = *outcomes[0].begin() == after ? *outcomes[0].rbegin() : *outcomes[0].begin();
    const auto known = e.certainty_of(end.guard, std::span(kernel_.code).subspan(b.first, b.last - 1 - b.first));
    for (const auto& [is_so, to] : {std::pair{known.all, taken}, {known.none, after}}) {
      if (llvm::isa<llvm::ConstantInt>(is_so)) continue;  // the test is never true
      llvm::BasicBlock* const together = llvm::BasicBlock::Create(e.at.getContext(), "", e.function());
      llvm::BasicBlock* const rest = llvm::BasicBlock::Create(e.at.getContext(), "", e.function());
      e.at.CreateCondBr(is_so, together, rest);
      e.at.SetInsertPoint(together);
      emit_idle_rest(e, block, to, to == taken);
      send(e, region, block, to, e.mask);
      go_on(e, region, block, {to});
      e.at.SetInsertPoint(rest);
    }
    Value* const going = e.lanes_where(end.guard);
    Value* staying = e.at.CreateNot(going);
    if (e.mask != nullptr) staying = e.at.CreateAnd(e.mask, staying);
    send(e, region, block, taken, going);
    send(e, region, block, after, staying);
    go_on(e, region, block, outcomes[0]);
  }
}

// Emits the meeting at the end of a block: the lanes of e.mask pass it if all lanes that it needs have arrived.
// Otherwise the lanes leave the region.
void region_emitter::emit_passage(emitter& e, const lane_region& region, std::uint32_t block) {
  const basic_block& b = flow_.blocks()[block];
  const instruction& meeting = kernel_.code[b.last - 1];
  const std::uint32_t after = flow_.block_at(b.last);
  Value* const is_whole = e.is_of_all_lanes(meeting);
  Value* const whole_warp = e.at.getInt32(~0U);
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(is_whole); known != nullptr && known->isOne()) {
    e.emit_meeting(meeting, whole_warp);
    send(e, region, block, after, nullptr);
    return go_on(e, region, block, {after});
  }
  llvm::LLVMContext& c = e.at.getContext();
  llvm::BasicBlock* const whole = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const other = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const some = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const passed = llvm::BasicBlock::Create(c, "", e.function());
  llvm::BasicBlock* const leave = llvm::BasicBlock::Create(c, "", e.function());
  e.at.CreateCondBr(is_whole, whole, other, llvm::MDBuilder(c).createBranchWeights(16, 1));
  e.at.SetInsertPoint(whole);
  Value* const mask = std::exchange(e.mask, nullptr);
  e.emit_meeting(meeting, whole_warp);
  e.mask = mask;
  e.at.CreateBr(passed);

  e.at.SetInsertPoint(other);
  Value* alive = e.lane_bits(nullptr);
  if (mask != nullptr && region.waiting[block].contains(lane_region::gone)) {
    Value* const outcomes = e.at.CreateLoad(of_lanes(e, e.at.getInt32Ty()), lane_outcomes_);
    alive = e.lane_bits(e.at.CreateICmpNE(outcomes, e.splat(e.at.getInt32(block_context::ended))));
  }
  const emitter::members_of_meeting members = e.find_members(meeting, alive);
  e.at.CreateCondBr(members.are_there, some, leave);
  e.at.SetInsertPoint(some);
  e.emit_meeting(meeting, members.lanes);
  e.at.CreateBr(passed);

  e.at.SetInsertPoint(leave);
  send(e, region, block, lane_region::gone, mask);
  go_on(e, region, block, {lane_region::gone});
  e.at.SetInsertPoint(passed);
  send(e, region, block, after, mask);
  go_on(e, region, block, {after});
}

void region_emitter::store_in_frame(emitter& e, std::uint32_t r, Value* bits, Value* lanes) {
  Value* const place = frame_place(e, r);
  e.own(lanes == nullptr ? static_cast<llvm::Instruction*>(e.at.CreateAlignedStore(bits, place, llvm::Align(8)))
                         : e.at.CreateMaskedStore(bits, place, llvm::Align(8), lanes));
}

// Emits code by which `lanes` wait for block `to`, or leave the region. If `lanes` is null, all lanes do.
void region_emitter::send(emitter& e, const lane_region& region, std::uint32_t block, std::uint32_t to, Value* lanes) {
  if (to != lane_region::gone) {
    if (region.waiting[to].empty()) return;  // no lane waits for another block while `to` runs, so `to` needs no mask
    Value* const more = lanes == nullptr ? full_mask(e) : lanes;
    Value* const waiting = e.at.CreateLoad(of_lanes(e, e.at.getInt1Ty()), waiting_[to]);
    e.at.CreateStore(e.at.CreateOr(waiting, more), waiting_[to]);
    return;
  }
  const std::uint32_t point = point_after(block);
  if (point != block_context::ended) {
    for (const auto& [r, is_shown] : kept_at(point)) store_in_frame(e, r, e.in_all_lanes(r, !is_shown), lanes);
  }
  if (lanes == nullptr) return;  // go_on() handles the outcome of all lanes
  llvm::Type* const i32 = e.at.getInt32Ty();
  Value* outcome = e.splat(e.at.getInt32(point));
  outcome = e.at.CreateSelect(lanes, outcome, e.at.CreateLoad(of_lanes(e, i32), lane_outcomes_));
  e.at.CreateStore(outcome, lane_outcomes_);
}

// Emits a branch to the first block for which lanes wait, or to the next group.
void region_emitter::go_on(emitter& e, const lane_region& region, std::uint32_t block,
                           const std::set<std::uint32_t>& outcome) {
  if (e.mask == nullptr && outcome == std::set{lane_region::gone}) {
    together_outcome_->addIncoming(e.at.getInt32(point_after(block)), e.at.GetInsertBlock());
    e.at.CreateBr(together_outcome_->getParent());
    return;
  }
  std::vector<std::uint32_t> next = region.next(block, outcome);
  if (e.mask == nullptr)
    std::erase_if(next, [&](std::uint32_t to) { return !outcome.contains(to); });  // no lane waits for other blocks
  const bool is_sure = !outcome.contains(lane_region::gone);
  for (std::size_t n = 0; n < next.size(); ++n) {
    if (is_sure && n + 1 == next.size()) {
      e.at.CreateBr(lane_blocks_[next[n]]);
      return;
    }
    llvm::BasicBlock* const other = llvm::BasicBlock::Create(e.at.getContext(), "", e.function());
    e.at.CreateCondBr(e.any(e.at.CreateLoad(of_lanes(e, e.at.getInt1Ty()), waiting_[next[n]])), lane_blocks_[next[n]],
                      other);
    e.at.SetInsertPoint(other);
  }
  e.at.CreateBr(latch_);
}

}  // namespace hpe::ptx
