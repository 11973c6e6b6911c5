#pragma once

/// Emits a kernel as LLVM functions, called regions: one for the code after the kernel's entry, and one for the code
/// after each meeting. A meeting is an instruction at which threads wait for each other (call_graph.h).
///
/// A region runs threads first <= t < last in a loop, each thread from the region's first instruction to the thread's
/// next meeting or its end. Between regions, the block's frame (block_context::frame) stores the registers that a
/// thread needs later. Therefore threads that stay together run in one loop, which LLVM optimises like any other loop,
/// and threads that diverge also run correctly (compare Karrenberg and Hack, "Improving Performance of OpenCL on CPUs",
/// 2012; Jaeskelaeinen et al., "pocl", 2015). A region contains all code that threads can reach from the region's
/// beginning without leaving it at a meeting, so code that follows several meetings is in several regions.

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/flow/block_values.h"
#include "runtime/ptx/flow/flat_kernel.h"
#include "runtime/ptx/flow/idle_ways.h"

namespace hpe::ptx {

/// The data of a compiled kernel that the scheduler needs.
struct meeting_table {
  std::vector<instruction>
      points;  // the meetings, with frame slots in place of registers, and without guards; [0] is empty
  std::vector<bool> is_passable;         // by point: whether the meeting, with its guard, is_passable (lanes.h)
  std::vector<std::uint32_t> positions;  // by point: the position of the meeting in the kernel's code; [0] is unused
  std::uint32_t slots = 0;
  std::vector<std::uint32_t> slot_of;  // by register; no_slot if the frame does not contain the register
  static constexpr std::uint32_t no_slot = ~0U;
  bool runs_strips = false;  // execution_engine::runs_strips
};

class region_emitter {
 public:
  region_emitter(module_context& shared, const flat_kernel& kernel);
  [[nodiscard]] const meeting_table& table() const { return table_; }
  /// Emits the functions of the regions: "region_0", "region_1" and so on. The functions have the type
  /// i32(block_context*, i32 first, i32 last) and return the result of execution_engine::run.
  void emit();

 private:
  void find_points();
  void find_repeated();
  void assign_slots();
  [[nodiscard]] std::uint32_t first_block(std::uint32_t point) const;
  void emit_repeated(emitter& e, const std::vector<std::uint32_t>& registers);
  [[nodiscard]] std::vector<std::pair<std::uint32_t, bool>> kept_at(std::uint32_t point) const;
  void emit_region(std::uint32_t point);
  void emit_alone(emitter& e, std::uint32_t point);
  llvm::Value* emit_parameters(emitter& e) const;
  void emit_block(emitter& e, std::uint32_t block);
  llvm::BasicBlock* target(emitter& e, std::uint32_t block);
  void emit_leave(emitter& e, std::uint32_t point);
  void leave_to(emitter& e, std::uint32_t next);
  /// Returns the point at which a thread continues if it leaves the region at the end of this block; `ended` if the
  /// thread ends there.
  [[nodiscard]] std::uint32_t point_after(std::uint32_t block) const;
  void find_written(const lane_region& region, bool everything);
  void begin_strip(emitter& e);
  void begin_block_of_strip(emitter& e, llvm::BasicBlock* before);
  std::pair<llvm::Value*, llvm::Value*> end_block_of_strip(emitter& e, llvm::Value* next, llvm::Value* goes_on);
  static void store_position(emitter& e);
  llvm::Value* frame_place(emitter& e, std::uint32_t r);

  // Threads in lanes (lane_loop.cpp).
  /// Returns the registers that have the same value in all threads of the block whenever all threads continue from
  /// `point`.
  [[nodiscard]] std::vector<std::uint32_t> block_values_at(std::uint32_t point) const;
  llvm::Value* can_group(emitter& e, llvm::Function* f, std::uint32_t point);
  void emit_lane_loop(llvm::Function* f, std::uint32_t point);
  llvm::Value* emit_rest_alone(emitter& e, std::uint32_t point, llvm::Value* first, llvm::Value* before);
  llvm::ConstantInt* only_outcome_of(emitter& e, const lane_region& region) const;
  llvm::Value* emit_lane_outcome(emitter& e, llvm::Value* first, llvm::Value* thread, llvm::Value* before,
                                 llvm::ConstantInt* only_outcome);
  llvm::Value* restore_in_lanes(emitter& e, std::uint32_t point, const std::map<std::uint32_t, llvm::Value*>& known);
  void emit_block_in_lanes(emitter& e, const lane_region& region, std::uint32_t block);
  void emit_end_in_lanes(emitter& e, const lane_region& region, std::uint32_t block);
  void emit_passage(emitter& e, const lane_region& region, std::uint32_t block);
  /// `lanes`: the lanes whose values the emitted code stores; null for all lanes.
  void store_in_frame(emitter& e, std::uint32_t r, llvm::Value* bits, llvm::Value* lanes);
  void send(emitter& e, const lane_region& region, std::uint32_t block, std::uint32_t to, llvm::Value* lanes);
  void go_on(emitter& e, const lane_region& region, std::uint32_t block, const std::set<std::uint32_t>& outcome);

  // Groups without work (idle_groups.cpp).
  using per_index = std::array<llvm::Value*, 3>;  // for x, y and z
  [[nodiscard]] std::optional<per_index> differences_of(emitter& e, const operand& of) const;
  static llvm::Value* emit_growth(emitter& e, const per_index& difference);
  llvm::Value* emit_stays_so(emitter& e, const basic_block& b, bool is_taken);
  void emit_idle_rest(emitter& e, std::uint32_t block, std::uint32_t to, bool is_taken);

  module_context& shared_;
  const flat_kernel& kernel_;
  control_flow flow_;
  loose_floats loose_;
  std::vector<std::uint32_t> points_;  // by point: the position of the meeting in the code; [0] is unused
  std::vector<std::uint32_t>
      point_of_;  // by position in the code: the point of the meeting there; 0 if there is no meeting
  std::vector<const instruction*> repeated_;  // by register: the instruction that recomputes it; null if there is none
  std::optional<lane_analysis> lanes_;        // empty if threads run one by one
  std::vector<bool> has_block_value_;         // by register (find_block_values)
  meeting_table table_;
  // State for the current region:
  std::vector<llvm::BasicBlock*> emitted_;
  std::vector<std::uint32_t> open_;
  register_set written_;
  llvm::BasicBlock* latch_ = nullptr;
  llvm::PHINode* outcomes_ = nullptr;  // in the latch: the point at which the thread continues
  struct {
    llvm::Value *first, *last;
    llvm::PHINode* now;
  } strip_{};  // ctaid.x of the first block of the strip, of the last block, and of the running block
  // State of the region's loop in lanes:
  std::vector<llvm::BasicBlock*> lane_blocks_;
  std::vector<llvm::AllocaInst*> waiting_;     // by block: the mask of the lanes that wait for this block
  llvm::AllocaInst* lane_outcomes_ = nullptr;  // by lane: the outcome, for groups whose lanes leave at different times
  llvm::PHINode* together_outcome_ = nullptr;  // the point at which all lanes of a group continue
  struct {
    llvm::Value *thread, *last;  // the first thread of the group; the end of the range of threads
    llvm::Value* before;         // the outcome of the previous groups
    llvm::BasicBlock* done;
    llvm::PHINode* outcome;
  } loop_{};
  std::optional<idle_ways> idle_;  // empty if the region does not begin after a barrier of the whole block
};

}  // namespace hpe::ptx
