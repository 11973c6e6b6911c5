// What lanes cost and save. The unit is an instruction of one thread, or of all lanes.

#include <algorithm>

#include "runtime/ptx/flow/lanes.h"

namespace hpe::ptx {

namespace {

// An access of one lane at an address of its own. Without gathers, the address leaves a vector register and the value
// comes back to one.
constexpr double gathered = 1, moved = 4;
// Lanes that have left a loop wait until the last one leaves it.
constexpr double partly_filled = 1.5;
// One pass of the loop over lanes that executes an atomic instruction.
constexpr double looped = 4;
// A meeting that lanes pass, and one for each thread that leaves the code for it.
constexpr double passage = 8, meeting = 30;

// How often a block runs, as if all loops had few iterations.
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

bool lane_analysis::pays(const lane_region& region, bool has_fast_gathers) const {
  const double of_lane = has_fast_gathers ? gathered : moved;
  double together = 0, alone = 0;
  for (const std::uint32_t block : region.order) {
    const double runs = runs_of(region, block);
    const double filling = runs > 1 && !region.waiting[block].empty() ? partly_filled : 1;
    for (std::uint32_t n = flow_.blocks()[block].first; n < flow_.blocks()[block].last; ++n) {
      const instruction& i = code_[n];
      if (i.kind == kind::nothing) continue;
      const bool is_scattered = (i.kind == kind::load || i.kind == kind::store) && !has_step_of_size(i) &&
                                !(i.kind == kind::load && shape_of(i.sources[0]).is_uniform());
      const bool is_passed = region.has_passage(i);
      together += runs * filling *
                  (is_scattered             ? count_ * of_lane
                   : i.kind == kind::atomic ? count_ * looped
                   : is_passed              ? passage
                                            : 1);
      alone += runs * count_ * (is_passed ? meeting : 1);
    }
  }
  return together < alone;
}

}  // namespace hpe::ptx
