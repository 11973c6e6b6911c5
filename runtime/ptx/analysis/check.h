#pragma once

/// Compares the analysis of a kernel's accesses with the accesses of its blocks in the interpreter.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/evaluator.h"
#include "runtime/ptx/execution/interpreter.h"

namespace hpe::ptx::analysis {

/// A watcher that compares addresses with the analysis. Pass an object of this class to the interpreter that runs
/// blocks of the kernel. Each object serves one launch.
class record_check final : public watcher {
 public:
  /// Both arguments must outlive the object.
  record_check(const image& variables, const kernel_analysis& k);

  void comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                const std::uint64_t* registers, bool runs) override;

  /// One sentence for each record that is wrong.
  [[nodiscard]] const std::vector<std::string>& contradictions() const { return contradictions_; }
  /// The number of accesses whose address is equal to the value of a form.
  [[nodiscard]] std::uint64_t exact() const { return exact_; }
  /// The number of accesses for which no form's value can be computed, but the part without block indices was the same
  /// in all blocks.
  [[nodiscard]] std::uint64_t alike() const { return alike_; }
  /// The number of accesses that were not checked because an assumption of a form does not hold.
  [[nodiscard]] std::uint64_t outside_assumptions() const { return outside_; }
  /// The number of accesses for which no form can be checked.
  [[nodiscard]] std::uint64_t unchecked() const { return unchecked_; }

 private:
  struct thread_state {
    std::uint32_t last = ~0U;  // the index of the instruction that the kernel executed last
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
  std::vector<std::vector<const access*>> at_;  // by instruction: its accesses
  std::map<std::uint64_t, std::vector<thread_state>> blocks_;
  // By access, form, thread and loop counters: the part of the address that does not depend on block indices.
  std::map<std::vector<std::int64_t>, std::uint64_t> remainders_;
  std::vector<std::string> contradictions_;
  std::uint64_t exact_ = 0, alike_ = 0, outside_ = 0, unchecked_ = 0;

  // Valid while an access is checked.
  std::uint32_t thread_ = 0;
  const thread_state* state_ = nullptr;
  thread_place place_;
};

}  // namespace hpe::ptx::analysis
