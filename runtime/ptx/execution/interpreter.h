#pragma once

/// The reference engine: executes a program instruction by instruction and checks every access.

#include <memory>
#include <unordered_map>

#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/flow/handover.h"

namespace hpe::ptx {

/// Observes the instructions that an interpreter executes, to check the analysis of a kernel (record_check).
class instruction_observer {
 public:
  instruction_observer() = default;
  instruction_observer(const instruction_observer&) = delete;
  instruction_observer& operator=(const instruction_observer&) = delete;
  virtual ~instruction_observer() = default;

  /// The interpreter calls this when a thread reaches an instruction of `f`. `runs`: whether the instruction's guard
  /// holds, so that the thread executes the instruction. `registers` are the registers of this call of `f` before the
  /// instruction.
  virtual void comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                        const std::uint64_t* registers, bool runs) = 0;
};

class interpreter final : public execution_engine {
 public:
  /// An interpreter runs blocks of one size of one image. `p` and `observer` (if not null) must outlive the
  /// interpreter. Only one CPU thread at a time may use an interpreter.
  explicit interpreter(const program& p, ptx::instruction_observer* observer = nullptr);
  /// An interpreter for `kernel`, a copy of a kernel of `p` whose code has stops (with_stops), at which blocks leave
  /// the interpreter. Adds the executed instructions to `meter`. All arguments must outlive the interpreter.
  interpreter(const program& p, const function& kernel, work_meter& meter);
  ~interpreter() override;

  [[nodiscard]] std::uint32_t frame_slots() const override { return 0; }
  [[nodiscard]] const instruction& at(std::uint32_t point) const override { return *points_[point]; }
  void begin(block_context& block) override;
  std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) override;
  [[nodiscard]] std::uint32_t earliest(const block_context& block, std::uint32_t first,
                                       std::uint32_t lanes) const override;
  [[nodiscard]] std::shared_ptr<execution_engine> another() const override {
    return meter_ == nullptr ? std::make_shared<interpreter>(program_, observer_)
                             : std::make_shared<interpreter>(program_, *own_kernel_, *meter_);
  }

 private:
  friend class interpreted_thread;
  struct frame;
  struct thread;

  void number(const function& f);

  const program& program_;
  ptx::instruction_observer* const observer_;
  const function* const own_kernel_ = nullptr;  // a kernel that is not in the program
  work_meter* const meter_ = nullptr;           // null: instructions are not counted
  std::vector<const instruction*> points_;      // all meeting points of the program
  // By position: the meeting point of an instruction; 0 if the instruction is no meeting point.
  std::unordered_map<const function*, std::vector<std::uint32_t>> numbers_;
  std::vector<std::unique_ptr<thread>> threads_;
};

}  // namespace hpe::ptx
