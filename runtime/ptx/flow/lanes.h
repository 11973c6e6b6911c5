#pragma once

/// Adjacent threads of a block that run together: *lanes*. Native code executes an instruction for all lanes at once,
/// in vector registers, where the block's shape and the instructions allow that.
///
/// Lanes that take different branches wait for each other. The blocks of a region have an order in which loops are
/// contiguous; the code goes on with the first block that lanes wait for, so lanes that parted meet again where their
/// paths join (compare Karrenberg and Hack, "Whole-Function Vectorization", 2011; Pharr and Mark, "ispc", 2012).

#include <optional>
#include <set>

#include "runtime/ptx/flow/flow.h"

namespace hpe::ptx {

/// How the values of a register in different lanes are related, for all lanes that may still read it.
struct lane_shape {
  enum class kind : std::uint8_t {
    unknown,  // no value was found yet
    uniform,  // the same
    linear,   // that of lane 0 plus k times step in lane k, with overflow
    // A linear value of 32 bits, widened: if the values of the first and the last lane differ by (lanes - 1) times
    // step, those between are linear too. Otherwise the narrow value overflowed somewhere.
    widened,
    varying
  };
  kind what = kind::unknown;
  std::int64_t step = 0;
  bool is_aligned = false;  // linear with step 1, and lane 0 has a multiple of the number of lanes

  [[nodiscard]] bool is_uniform() const { return what == kind::uniform; }
  [[nodiscard]] bool has_step() const { return what == kind::linear || what == kind::widened; }
  [[nodiscard]] bool operator==(const lane_shape&) const = default;
};

/// The code from a place of the kernel to the next meetings, in the order in which lanes run it.
struct lane_region {
  static constexpr std::uint32_t gone = ~0U;  // in waiting: lanes that have left the region

  bool is_possible = false;  // the rest is valid only if so
  std::uint32_t first = 0;   // block
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> position;           // in order, by block; ~0U: not reached
  std::vector<std::uint32_t> loop_end;           // by block: for a loop's header, the position of its last block
  std::vector<std::set<std::uint32_t>> waiting;  // by block: where other lanes may be while it runs

  /// The blocks with which lanes may go on after `block` when some of them go to `outcome`, in order. One of those
  /// lanes is in the last block at the latest, unless all went to `gone`.
  [[nodiscard]] std::vector<std::uint32_t> next(std::uint32_t block, const std::set<std::uint32_t>& outcome) const;

 private:
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> turn(std::uint32_t block, std::uint32_t other) const;
};

class lane_analysis {
 public:
  /// count: the number of lanes, a power of two. starts: the blocks at which regions begin; [0] is the kernel's entry.
  /// The other arguments must outlive the analysis.
  lane_analysis(unsigned count, const std::vector<instruction>& code, const std::vector<type>& registers,
                const control_flow& flow, const std::vector<std::uint32_t>& starts);

  [[nodiscard]] unsigned count() const { return count_; }
  [[nodiscard]] const lane_shape& shape_of(std::uint32_t r) const { return shapes_[r]; }
  [[nodiscard]] lane_shape shape_of(const operand& o) const;
  /// Whether the addresses of a load or store follow each other, lane by lane, if none overflows.
  [[nodiscard]] bool has_step_of_size(const instruction& i) const;
  /// An estimate: whether a region takes less time in lanes than thread after thread. has_fast_gathers: the processor's
  /// instructions that load and store lanes at any addresses cost about as much as one access for each lane.
  [[nodiscard]] bool pays(const lane_region& region, bool has_fast_gathers) const;
  [[nodiscard]] const lane_region& region(std::size_t n) const { return regions_[n]; }

 private:
  void order_blocks(lane_region& region) const;
  void find_waiting(lane_region& region) const;
  void find_shapes();
  [[nodiscard]] bool force_varying();
  [[nodiscard]] lane_shape result_of(const instruction& i) const;
  [[nodiscard]] lane_shape result_of_pure(const instruction& i) const;

  const unsigned count_;
  const std::vector<instruction>& code_;
  const std::vector<type>& registers_;
  const control_flow& flow_;
  std::vector<lane_shape> shapes_;  // by register
  std::vector<bool> is_varying_;    // by register: lanes may hold values of different writes
  std::vector<lane_region> regions_;
};

/// Where lanes go after the last instruction of a block: sets of blocks and lane_region::gone. With several sets, all
/// lanes that run go to one of them; with one set of several blocks, each lane goes to one of the blocks.
[[nodiscard]] std::vector<std::set<std::uint32_t>> outcomes_of(const control_flow& flow,
                                                               const std::vector<instruction>& code,
                                                               std::uint32_t block, bool is_uniform);

/// Whether there is code for lanes for an instruction.
[[nodiscard]] bool runs_in_lanes(const instruction& i);

}  // namespace hpe::ptx
