#pragma once

/// Adjacent threads of a block that run together: *lanes*. Native code executes an instruction for all lanes at once,
/// in vector registers, if the block's shape and the instructions allow that.
///
/// Lanes that take different branches wait for each other. The blocks of a region have an order in which each loop is
/// contiguous. Execution continues with the first block in this order for which lanes wait. Therefore lanes that took
/// different paths run together again where the paths join (compare Karrenberg and Hack, "Whole-Function
/// Vectorization", 2011; Pharr and Mark, "ispc", 2012).
///
/// A meeting is an instruction at which threads wait for each other (call_graph.h). If the lanes are a whole warp, they
/// usually reach a shuffle, a vote or another meeting of the warp together. The lanes then *pass* the meeting: they
/// execute it like any other instruction. The lanes leave the code only if the meeting needs lanes that have not
/// reached it.

#include <optional>
#include <set>

#include "runtime/ptx/flow/flow.h"

namespace hpe::ptx {

/// How the values of a register in different lanes are related, for all lanes that may still read the register.
struct lane_shape {
  enum class kind : std::uint8_t {
    unknown,  // the analysis has found no write
    uniform,  // all lanes have the same value
    linear,   // lane k has the value of lane 0 plus k * step, modulo 2^w in a register of w bits
    // A linear 32-bit value, extended to 64 bits. If the values of the first and the last lane differ by (lanes - 1) *
    // step, all lanes are linear. Otherwise the 32-bit value overflowed in one of the lanes.
    widened,
    varying
  };
  kind what = kind::unknown;
  std::int64_t step = 0;
  bool is_aligned = false;  // the step is 1, and the value in lane 0 is a multiple of the number of lanes

  [[nodiscard]] bool is_uniform() const { return what == kind::uniform; }
  [[nodiscard]] bool has_step() const { return what == kind::linear || what == kind::widened; }
  [[nodiscard]] bool operator==(const lane_shape&) const = default;
};

/// Whether lanes can pass the meeting `i` when all lanes that it needs have reached it.
[[nodiscard]] bool is_passable(const instruction& i);

/// The code from one position of the kernel to the next meetings, in the order in which lanes run it.
struct lane_region {
  static constexpr std::uint32_t gone = ~0U;  // an element of `waiting` for lanes that have left the region

  bool is_possible = false;  // whether the region can run in lanes; if not, the other members are not valid
  bool passes = false;       // whether lanes pass meetings, so that the region continues after them
  std::uint32_t first = 0;   // block
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> position;  // by block: index in `order`; ~0U if the region does not reach the block
  std::vector<std::uint32_t>
      loop_end;  // by block: for the header of a loop, the position of the loop's last block; otherwise 0
  std::vector<std::set<std::uint32_t>>
      waiting;  // by block: the blocks for which other lanes may wait while this block runs

  /// Returns the blocks that may run directly after `block` if the lanes of `block` go to the blocks of `outcome`, in
  /// the order in which the code checks whether lanes wait for them (turn()). Lanes wait for at least one of these
  /// blocks, unless all lanes went to `gone`.
  [[nodiscard]] std::vector<std::uint32_t> next(std::uint32_t block, const std::set<std::uint32_t>& outcome) const;
  /// Whether lanes may pass the meeting `i` in this region.
  [[nodiscard]] bool has_passage(const instruction& i) const { return passes && is_passable(i); }

 private:
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> turn(std::uint32_t block, std::uint32_t other) const;
};

/// Returns the distance of the addresses of lanes whose accesses are adjacent.
[[nodiscard]] std::int64_t step_of_size(const instruction& i);

class lane_analysis {
 public:
  /// `count`: the number of lanes, a power of two; lanes pass meetings only if `count` is 32. `starts`: the blocks at
  /// which regions begin; [0] is the kernel's entry. `code`, `registers` and `flow` must outlive the analysis.
  lane_analysis(unsigned count, const std::vector<instruction>& code, const std::vector<type>& registers,
                const control_flow& flow, const std::vector<std::uint32_t>& starts);

  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] const lane_shape& shape_of(std::uint32_t r) const { return shapes_[r]; }
  [[nodiscard]] lane_shape shape_of(const operand& o) const;
  /// Whether adjacent lanes load or store adjacent elements, provided that no address overflows.
  [[nodiscard]] bool has_step_of_size(const instruction& i) const;
  /// Whether adjacent lanes load or store elements with gaps of at most three elements between them, provided that no
  /// address overflows.
  [[nodiscard]] bool has_small_gaps(const instruction& i) const;
  /// Estimates whether a region takes less time if its threads run in lanes than if they run one after the other.
  /// `has_fast_gathers`: the CPU has gather and scatter instructions that take about as long as one access for each
  /// lane.
  [[nodiscard]] bool pays(const lane_region& region, bool has_fast_gathers) const;
  /// Whether the code mainly moves contiguous memory and needs few registers. Then each test in the code takes much of
  /// the time, and twice the lanes need half of the tests.
  [[nodiscard]] bool streams() const;
  [[nodiscard]] const lane_region& region(std::size_t n) const { return regions_[n]; }

 private:
  void find_regions(const std::vector<std::uint32_t>& starts);
  [[nodiscard]] std::vector<std::uint32_t> blocks_behind(std::uint32_t first) const;
  [[nodiscard]] bool may_wait_for_others(const lane_region& region) const;
  [[nodiscard]] bool ends_by_memory_alone(const lane_region& region, std::uint32_t header) const;
  void order_blocks(lane_region& region) const;
  void find_waiting(lane_region& region) const;
  void find_shapes();
  [[nodiscard]] std::vector<bool> find_loaded() const;
  [[nodiscard]] bool force_varying();
  [[nodiscard]] lane_shape result_of(const instruction& i) const;
  [[nodiscard]] lane_shape result_of_meeting(const instruction& i) const;
  [[nodiscard]] lane_shape result_of_pure(const instruction& i) const;

  const unsigned count_;
  const std::vector<instruction>& code_;
  const std::vector<type>& registers_;
  const control_flow& flow_;
  std::vector<lane_shape> shapes_;  // by register
  std::vector<bool> is_varying_;    // by register: the values of different lanes may come from different instructions
  std::vector<lane_region> regions_;
  std::vector<bool> is_loaded_;  // by register: the value may depend on memory
};

/// Returns where lanes may continue after the last instruction of a block of a region: sets whose elements are blocks
/// or lane_region::gone. All lanes that run go to the same set. Within that set, each lane goes to one of the blocks.
[[nodiscard]] std::vector<std::set<std::uint32_t>> outcomes_of(const lane_region& region, const control_flow& flow,
                                                               const std::vector<instruction>& code,
                                                               std::uint32_t block, bool is_uniform);

/// Whether the compiler can emit code that runs this instruction in lanes.
[[nodiscard]] bool runs_in_lanes(const instruction& i);

}  // namespace hpe::ptx
