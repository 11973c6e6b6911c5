#pragma once

/// Compares what an analysis says of a kernel's accesses with what blocks of the kernel do in the interpreter.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/evaluator.h"
#include "runtime/ptx/execution/interpreter.h"

namespace hpe::ptx::analysis {

/// To be given to the interpreter that runs blocks of the kernel; for one launch.
class record_check final : public watcher {
 public:
  /// Both must outlive the object.
  record_check(const image& variables, const kernel_analysis& k);

  void comes_to(const block_context& block, std::uint32_t thread, const function& f, std::uint32_t position,
                const std::uint64_t* registers, bool runs) override;

  /// A sentence for each record that is wrong.
  [[nodiscard]] const std::vector<std::string>& contradictions() const { return contradictions_; }
  /// Accesses whose address was computed from its form and was right.
  [[nodiscard]] std::uint64_t exact() const { return exact_; }
  /// Accesses of which the form has a part that cannot be computed, and the part was the same in all blocks.
  [[nodiscard]] std::uint64_t alike() const { return alike_; }
  /// Accesses for which an assumption does not hold.
  [[nodiscard]] std::uint64_t outside_assumptions() const { return outside_; }
  /// Accesses of which nothing is said that can be checked.
  [[nodiscard]] std::uint64_t unchecked() const { return unchecked_; }

 private:
  struct thread_state {
    std::uint32_t last = ~0U;  // the kernel's last instruction
    std::vector<std::int64_t> counters;
  };
  using number = evaluator::number;
  enum class outcome : std::uint8_t { right, wrong, unknown, outside };

  void check(const access& a, std::uint64_t address);
  void check(const access& a, const comparison& c);
  [[nodiscard]] outcome compare(const access& a, std::size_t form, std::uint64_t address);
  [[nodiscard]] bool same_in_all_blocks(const access& a, std::size_t form, std::uint64_t address);
  void contradict(const access& a, const std::string& what);

  const image& variables_;
  const kernel_analysis& kernel_;
  evaluator evaluator_;
  std::vector<std::vector<const access*>> at_;  // of each instruction
  std::map<std::uint64_t, std::vector<thread_state>> blocks_;
  // What remains of an address without the block indices, by access, form, thread and counters.
  std::map<std::vector<std::int64_t>, std::uint64_t> remainders_;
  std::vector<std::string> contradictions_;
  std::uint64_t exact_ = 0, alike_ = 0, outside_ = 0, unchecked_ = 0;

  // While an access is checked.
  std::uint32_t thread_ = 0;
  const thread_state* state_ = nullptr;
  thread_place place_;
};

}  // namespace hpe::ptx::analysis
