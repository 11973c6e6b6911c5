// Estimates whether it pays to run a region in vector lanes. The unit of cost is one instruction, executed by one
// thread or by all lanes together.

#include <algorithm>

#include "runtime/ptx/flow/lanes.h"

namespace hpe::ptx {

namespace {

// The cost, for each lane, of an access whose lanes have unrelated addresses: `gathered` with gather instructions,
// `moved` without. Without gather instructions, the code passes each address through memory and inserts each value
// into a vector register. `computed`: the cost if the address does not depend on values from memory, because the
// addresses of the lanes are then often contiguous.
constexpr double gathered = 1, moved = 5, computed = 2;
// The factor for blocks of a loop that lanes leave at different times, because early lanes wait for the last lane.
constexpr double partly_filled = 1.5;
// The cost, for each lane, of an atomic instruction, which runs in a loop over the lanes.
constexpr double looped = 4;
// `passage`: the cost of a meeting that all lanes pass without leaving the code. `meeting`: the cost of a meeting for
// each thread that leaves the code.
constexpr double passage = 8, meeting = 30;

// Estimates how often a block runs. The estimate assumes 8 iterations of each loop, and at most 512 runs of a block.
double runs_of(const lane_region& region, std::uint32_t block) {
  constexpr double iterations = 8, most = 512;
  const std::uint32_t place = region.position[block];
  double runs = 1;
  for (const std::uint32_t header : region.order)
    if (region.loop_end[header] != 0 && region.position[header] <= place && place <= region.loop_end[header])
      runs = std::min(most, runs * iterations);
  return runs;
}

}  // namespace

// Returns, for each register, whether its value depends on a load or an atomic operation.
std::vector<bool> lane_analysis::find_loaded() const {
  std::vector<bool> result(registers_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const instruction& i : code_) {
      const bool is_load = i.kind == kind::load && i.sources[0].what != operand::kind::formal;
      const bool is_loaded = is_load || i.kind == kind::atomic ||
                             std::any_of(i.sources.begin(), i.sources.end(),
                                         [&](const operand& o) { return o.is_register() && result[o.index]; });
      if (!is_loaded) continue;
      for (const operand& o : i.results) {
        if (!o.is_register() || result[o.index]) continue;
        result[o.index] = true;
        changed = true;
      }
    }
  }
  return result;
}

bool lane_analysis::pays(const lane_region& region, bool has_fast_gathers) const {
  const auto of_lane = [&](const instruction& i) {
    if (has_fast_gathers) return gathered;
    return i.sources[0].is_register() && !is_loaded_[i.sources[0].index] ? computed : moved;
  };
  double together = 0, alone = 0;
  for (const std::uint32_t block : region.order) {
    const double runs = runs_of(region, block);
    const double filling = runs > 1 && !region.waiting[block].empty() ? partly_filled : 1;
    for (std::uint32_t n = flow_.blocks()[block].first; n < flow_.blocks()[block].last; ++n) {
      const instruction& i = code_[n];
      if (i.kind == kind::nothing) continue;
      const bool is_scattered = (i.kind == kind::load || i.kind == kind::store) && !has_step_of_size(i) &&
                                !(i.kind == kind::load && (shape_of(i.sources[0]).is_uniform() || has_small_gaps(i)));
      const bool is_passed = region.has_passage(i);
      together += runs * filling *
                  (is_scattered             ? count_ * of_lane(i)
                   : i.kind == kind::atomic ? count_ * looped
                   : is_passed              ? passage
                                            : 1);
      alone += runs * count_ * (is_passed ? meeting : 1);
    }
  }
  return together < alone;
}

bool lane_analysis::streams() const {
  // The largest number of instructions for each access, and the largest size, in bytes for each lane, of the values
  // that differ between lanes and are live at the same time.
  constexpr std::size_t most_instructions = 16, most_bytes = 40;
  std::size_t accesses = 0, instructions = 0;
  for (const lane_region& region : regions_) {
    if (!region.is_possible) return false;
    for (const std::uint32_t block : region.order) {
      std::size_t bytes = 0;
      for (const std::uint32_t r : flow_.alive_at(block).members())
        if (shapes_[r].what == lane_shape::kind::varying) bytes += bytes_of(registers_[r]);
      if (bytes > most_bytes) return false;
      for (std::uint32_t n = flow_.blocks()[block].first; n < flow_.blocks()[block].last; ++n) {
        const instruction& i = code_[n];
        ++instructions;
        const bool is_access = i.kind == kind::load || i.kind == kind::store || i.kind == kind::atomic;
        if (!is_access || i.sources[0].what == operand::kind::formal) continue;
        ++accesses;
        const bool is_contiguous = i.kind != kind::atomic && i.vector <= 2 && has_step_of_size(i);
        if (!is_contiguous && !shape_of(i.sources[0]).is_uniform()) return false;
      }
    }
  }
  return instructions <= most_instructions * accesses;
}

}  // namespace hpe::ptx
