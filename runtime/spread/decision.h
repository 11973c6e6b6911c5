#pragma once

/// The planner's decision about a launch: which devices run which blocks of the grid (grid_cut.h), and which memory
/// should contain the launch's arrays (array_placement.h).

#include <string>
#include <vector>

#include "runtime/spread/array_placement.h"
#include "runtime/spread/grid_cut.h"

namespace hpe::spread {

/// One of the plans that the planner compared, and the predicted time of this plan.
struct alternative {
  std::string name;    // for example "device 0", "cut along y" or "cut along y, arrays moved"
  double seconds = 0;  // predicted seconds of the kernel, including its launches
  double move_seconds =
      0;  // predicted seconds of the moves and copies before the kernel, which later launches need not repeat
  double remote_bytes = 0, local_bytes = 0;
  double imbalance = 0;  // blocks of the largest part / mean blocks of a part - 1
};

/// The decision about one pointer of the kernel (kernel_model::pointers).
struct array_decision {
  array_placement move_to;   // the placement to establish before this launch; `stay` for no move
  bool use_replica = false;  // whether each device reads its own replica of the array
};

struct decision {
  cut how;
  std::vector<array_decision> arrays;
  double seconds = 0;         // predicted seconds of this launch
  double seconds_on_one = 0;  // predicted seconds of the fastest plan for one device, after its moves
  std::vector<alternative> alternatives;
  std::string reason;     // why the launch is spread in this way, or why it stays on one device
  bool is_short = false;  // whether the launch stays on one device because it is short

  [[nodiscard]] bool is_spread() const { return how.is_spread(); }
  /// Returns whether the decision moves arrays to other homes. Replicas do not count.
  [[nodiscard]] bool gives_homes() const;
  [[nodiscard]] bool uses_copies() const;
};

}  // namespace hpe::spread
