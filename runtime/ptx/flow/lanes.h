#pragma once

/// Adjacent threads of a block that run together: *lanes*. Native code executes an instruction for all lanes at once,
/// in vector registers, if the block's shape and the instructions allow that.
///
/// Lanes that take different branches wait for each other. The blocks of a region have an order in which each loop is
/// contiguous. Execution continues with the first block for which lanes wait, so lanes that took different paths meet
/// again where the paths join (compare Karrenberg and Hack, "Whole-Function Vectorization", 2011; Pharr and Mark,
/// "ispc", 2012).
///
/// If a group of lanes is a whole warp, its lanes are usually together at shuffles, votes and other meetings of warps.
/// The lanes then *pass* the meeting: they execute it like any other instruction. They leave the code only if some
/// lanes that the meeting needs are elsewhere.

#include <optional>
#include <set>

#include "runtime/ptx/flow/flow.h"

namespace hpe::ptx {

/// How the values of a register in different lanes are related, for all lanes that may still read the register.
struct lane_shape {
  enum class kind : std::uint8_t {
    unknown,  // no value was found yet
    uniform,  // the same
    linear,   // lane k has the value of lane 0 plus k * step, with overflow
    // A linear value of 32 bits that was extended. If the values of the first and the last lane differ by (lanes - 1) *
    // step, the values between are linear too. Otherwise the narrow value overflowed between these lanes.
    widened,
    varying
  };
  kind what = kind::unknown;
  std::int64_t step = 0;
  bool is_aligned = false;  // linear with step 1; the value in lane 0 is a multiple of the number of lanes

  [[nodiscard]] bool is_uniform() const { return what == kind::uniform; }
  [[nodiscard]] bool has_step() const { return what == kind::linear || what == kind::widened; }
  [[nodiscard]] bool operator==(const lane_shape&) const = default;
};

/// Whether lanes can pass this meeting if all lanes that it needs have reached it.
[[nodiscard]] bool is_passable(const instruction& i);

/// The code from a place of the kernel to the next meetings, in the order in which lanes run it.
struct lane_region {
  static constexpr std::uint32_t gone = ~0U;  // stands in `waiting` for lanes that have left the region

  bool is_possible = false;  // the other members are valid only if this is true
  bool passes = false;       // lanes pass meetings, and the region continues after them
  std::uint32_t first = 0;   // block
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> position;           // place in `order`, by block; ~0U: not reached
  std::vector<std::uint32_t> loop_end;           // by block: for a loop's header, the position of its last block
  std::vector<std::set<std::uint32_t>> waiting;  // by block: the blocks for which other lanes may wait while it runs

  /// The blocks that may run directly after `block`, in order, if its lanes go to the blocks of `outcome`. At least one
  /// of these blocks has lanes to run, unless all lanes went to `gone`.
  [[nodiscard]] std::vector<std::uint32_t> next(std::uint32_t block, const std::set<std::uint32_t>& outcome) const;
  /// Whether lanes may continue after this instruction although it is a meeting.
  [[nodiscard]] bool has_passage(const instruction& i) const { return passes && is_passable(i); }

 private:
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> turn(std::uint32_t block, std::uint32_t other) const;
};

class lane_analysis {
 public:
  /// `count`: the number of lanes, a power of two; groups of 32 lanes pass meetings. `starts`: the blocks at which
  /// regions begin; [0] is the kernel's entry. The other arguments must outlive the analysis.
  lane_analysis(unsigned count, const std::vector<instruction>& code, const std::vector<type>& registers,
                const control_flow& flow, const std::vector<std::uint32_t>& starts);

  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] const lane_shape& shape_of(std::uint32_t r) const { return shapes_[r]; }
  [[nodiscard]] lane_shape shape_of(const operand& o) const;
  /// Whether the addresses of a load or store are contiguous from lane to lane, provided that no address overflows.
  [[nodiscard]] bool has_step_of_size(const instruction& i) const;
  /// Estimates whether a region takes less time if its threads run in lanes than if they run one after the other.
  /// `has_fast_gathers`: the processor's instructions that load and store lanes at any addresses cost about as much as
  /// one access for each lane.
  [[nodiscard]] bool pays(const lane_region& region, bool has_fast_gathers) const;
  [[nodiscard]] const lane_region& region(std::size_t n) const { return regions_[n]; }

 private:
  void find_regions(const std::vector<std::uint32_t>& starts);
  [[nodiscard]] std::vector<std::uint32_t> blocks_behind(std::uint32_t first) const;
  [[nodiscard]] bool may_wait_for_others(const lane_region& region) const;
  [[nodiscard]] bool ends_by_memory_alone(const lane_region& region, std::uint32_t header) const;
  void order_blocks(lane_region& region) const;
  void find_waiting(lane_region& region) const;
  void find_shapes();
  [[nodiscard]] bool force_varying();
  [[nodiscard]] lane_shape result_of(const instruction& i) const;
  [[nodiscard]] lane_shape result_of_meeting(const instruction& i) const;
  [[nodiscard]] lane_shape result_of_pure(const instruction& i) const;

  const unsigned count_;
  const std::vector<instruction>& code_;
  const std::vector<type>& registers_;
  const control_flow& flow_;
  std::vector<lane_shape> shapes_;  // by register
  std::vector<bool> is_varying_;    // by register: values in different lanes may come from different writes
  std::vector<lane_region> regions_;
};

/// The destinations of lanes after the last instruction of a block of a region: sets of blocks and lane_region::gone.
/// If there are several sets, all lanes that run go to the same set. In a set of several blocks, each lane goes to one
/// of the blocks.
[[nodiscard]] std::vector<std::set<std::uint32_t>> outcomes_of(const lane_region& region, const control_flow& flow,
                                                               const std::vector<instruction>& code,
                                                               std::uint32_t block, bool is_uniform);

/// Whether the compiler emits code for this instruction that runs in lanes.
[[nodiscard]] bool runs_in_lanes(const instruction& i);

}  // namespace hpe::ptx
