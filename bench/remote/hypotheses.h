#pragma once

/// The five hypotheses on remote memory of J. Cabezas's thesis, section 6.3, and its image filters. Each gives lines of
/// a table, and most also give a picture.

#include <vector>

#include "bench/common/measure.h"
#include "bench/remote/experiment.h"

namespace hpe::bench::remote {

struct answer {
  std::vector<result> lines;
  std::vector<picture> pictures;
};

/// Do kernels reach the rate of copies? Measures reads, writes, both, both devices at once, and host memory.
[[nodiscard]] answer bandwidth(experiment& e);
/// Do remote accesses overlap with local ones if they are spread over the whole pass, and not if they come in one
/// batch?
[[nodiscard]] answer progress_over_time(experiment& e);
/// How does the overhead grow with the share of remote elements and shrink with computation, compared with the bound?
[[nodiscard]] answer overhead(experiment& e);
/// How many threads are needed to reach the full rate?
[[nodiscard]] answer occupancy(experiment& e);
/// Are tables that all threads read as fast in far memory if they fit into a cache?
[[nodiscard]] answer cached_tables(experiment& e);
/// Atomic additions to counters in the memory of a device or of the host.
[[nodiscard]] answer atomics(experiment& e);
/// Image filters whose weights are copied to each device, or are in a single memory.
[[nodiscard]] answer filters(experiment& e);

}  // namespace hpe::bench::remote
