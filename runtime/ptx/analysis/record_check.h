#pragma once

/// Compares the analysis of a kernel with the accesses that the interpreter executes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/evaluator.h"
#include "runtime/ptx/execution/interpreter.h"

namespace hpe::ptx::analysis {

/// An observer that compares the addresses of accesses with the analysis. The interpreter that runs the kernel calls
/// the observer. Each launch needs its own object.
class record_check final : public instruction_observer {
 public:
  /// Both arguments must outlive the object.
  record_check(const image& variables, const kernel_analysis& k);

  void comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                const std::uint64_t* registers, bool runs) override;

  /// Returns one sentence for each access that contradicts the analysis: the first 20 of these sentences.
  [[nodiscard]] const std::vector<std::string>& contradictions() const { return contradictions_; }
  /// Returns the number of accesses whose address is equal to the value of a form.
  [[nodiscard]] std::uint64_t exact() const { return exact_; }
  /// Returns the number of accesses for which no form has a known value, but whose address without the block index
  /// terms was the same in all blocks.
  [[nodiscard]] std::uint64_t alike() const { return alike_; }
  /// Returns the number of accesses that were not checked because an assumption of a form does not hold.
  [[nodiscard]] std::uint64_t outside_assumptions() const { return outside_; }
  /// Returns the number of accesses for which the check could evaluate no form.
  [[nodiscard]] std::uint64_t unchecked() const { return unchecked_; }

 private:
  struct thread_state {
    std::uint32_t last = ~0U;  // the index of the last instruction that the thread has executed
    std::vector<std::int64_t> counters;
  };
  using number = evaluator::number;
  enum class outcome : std::uint8_t { right, wrong, unknown, outside };

  void check(const access& a, std::uint64_t address);
  void check(const access& a, const comparison& c);
  [[nodiscard]] outcome compare(const access& a, std::size_t form, std::uint64_t address);
  [[nodiscard]] bool same_in_all_blocks(const access& a, std::size_t form, std::uint64_t address);
  [[nodiscard]] loop_set whole_grids(expression_id e) const;
  void contradict(const access& a, const std::string& what);

  const image& variables_;
  const kernel_analysis& kernel_;
  evaluator evaluator_;
  std::vector<std::vector<const access*>> at_;  // by instruction: the accesses of the instruction
  std::map<std::uint64_t, std::vector<thread_state>> blocks_;
  // By access, form, thread and loop counters: the address without the terms that contain block indices.
  std::map<std::vector<std::int64_t>, std::uint64_t> remainders_;
  std::vector<std::string> contradictions_;
  std::uint64_t exact_ = 0, alike_ = 0, outside_ = 0, unchecked_ = 0;

  // Valid during the check of one access.
  std::uint32_t thread_ = 0;
  const thread_state* state_ = nullptr;
  thread_place place_;
};

}  // namespace hpe::ptx::analysis
