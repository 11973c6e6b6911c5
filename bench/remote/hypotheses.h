#pragma once

/// The five hypotheses on remote memory of J. Cabezas's thesis, section 6.3, and its image filters. Each function
/// returns lines of a table, and most also return a picture.

#include <vector>

#include "bench/common/measure.h"
#include "bench/remote/remote_experiment.h"

namespace hpe::bench::remote {

struct answer {
  std::vector<result> lines;
  std::vector<picture> pictures;
};

/// Do kernels access far memory at the rate of copies? Measures reads, writes, both, both devices at once, and host
/// memory.
[[nodiscard]] answer bandwidth(experiment& e);
/// Do accesses to far memory overlap with local accesses if they are spread over the pass, but not if they form one
/// batch?
[[nodiscard]] answer progress_over_time(experiment& e);
/// How does the overhead grow with the share of far elements and shrink with the computation for each element, compared
/// with the bound?
[[nodiscard]] answer overhead(experiment& e);
/// How many threads are needed for the full rate of far memory?
[[nodiscard]] answer occupancy(experiment& e);
/// Are tables that all threads read as fast in far memory as in near memory, if they fit into a cache?
[[nodiscard]] answer cached_tables(experiment& e);
/// Measures atomic additions to counters in the memory of a device or of the host.
[[nodiscard]] answer atomics(experiment& e);
/// Measures image filters whose weights are copied to each device or are in one memory.
[[nodiscard]] answer filters(experiment& e);

}  // namespace hpe::bench::remote
