#pragma once

/// The control flow of a function: basic blocks, dominators and natural loops.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx::analysis {

/// A set of loops, by number.
class loop_set {
 public:
  static constexpr std::uint32_t capacity = 64;

  void add(std::uint32_t loop) { bits_ |= std::uint64_t{1} << loop; }
  [[nodiscard]] bool has(std::uint32_t loop) const { return (bits_ >> loop & 1) != 0; }
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  [[nodiscard]] loop_set without(loop_set other) const { return loop_set(bits_ & ~other.bits_); }
  [[nodiscard]] loop_set with(loop_set other) const { return loop_set(bits_ | other.bits_); }
  loop_set() = default;

 private:
  explicit loop_set(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

struct flow_block {
  std::uint32_t first = 0, last = 0;  // instructions n with first <= n < last
  std::vector<std::uint32_t> successors, predecessors;
  std::uint32_t dominator = 0;  // the immediate dominator; for the entry block, the block itself
  std::uint32_t order = 0;      // position in a reverse postorder of the flow graph
  std::uint32_t opened = 0,
                closed = 0;  // the times at which a traversal of the dominator tree enters and leaves the block
  bool is_reachable = false;
  loop_set loops;                      // the loops that contain the block
  std::optional<std::uint32_t> heads;  // the loop whose header is this block
};

struct flow_loop {
  std::uint32_t header = 0;
  std::vector<std::uint32_t> blocks;   // the loop's blocks, including the header
  std::vector<std::uint32_t> latches;  // blocks that jump back to the header
  std::uint32_t depth = 0;             // 0 if the loop is not nested in another loop
};

class flow_graph {
 public:
  explicit flow_graph(const std::vector<instruction>& code);

  [[nodiscard]] const std::vector<flow_block>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<flow_loop>& loops() const { return loops_; }
  /// The reachable blocks, sorted so that each block comes before the blocks that it dominates.
  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }
  [[nodiscard]] std::uint32_t block_at(std::uint32_t instruction) const { return block_of_[instruction]; }
  [[nodiscard]] bool dominates(std::uint32_t above, std::uint32_t below) const {
    return blocks_[above].opened <= blocks_[below].opened && blocks_[below].closed <= blocks_[above].closed;
  }
  /// Returns true if a jump enters a loop at a block other than its header, or if the function has more than
  /// loop_set::capacity loops. The result of loops() is then incomplete.
  [[nodiscard]] bool is_irregular() const { return irregular_; }

 private:
  void find_blocks(const std::vector<instruction>& code);
  void find_order();
  void find_dominators();
  void number_dominators();
  void find_loops();

  std::vector<flow_block> blocks_;
  std::vector<flow_loop> loops_;
  std::vector<std::uint32_t> order_, block_of_;
  bool irregular_ = false;
};

}  // namespace hpe::ptx::analysis
