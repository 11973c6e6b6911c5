#pragma once

/// The five hypotheses on remote memory of J. Cabezas's thesis, section 6.3, and its image filters, each as lines of a
/// table and, most of them, a picture.

#include <vector>

#include "bench/common/measure.h"
#include "bench/remote/experiment.h"

namespace hpe::bench::remote {

struct answer {
  std::vector<result> lines;
  std::vector<picture> pictures;
};

/// Kernels reach the rate of copies: reads, writes, both, both devices at once, host memory.
[[nodiscard]] answer bandwidth(experiment& e);
/// Where remote accesses are spread over the whole pass, they hide behind local ones; in one batch they do not.
[[nodiscard]] answer progress_over_time(experiment& e);
/// How the overhead grows with the share of remote elements and shrinks with computation, beside the bound.
[[nodiscard]] answer overhead(experiment& e);
/// How many threads are needed.
[[nodiscard]] answer occupancy(experiment& e);
/// Tables that all threads read may be remote while they fit into a cache.
[[nodiscard]] answer cached_tables(experiment& e);
/// Atomic additions to counters that one device, or the host, is home to.
[[nodiscard]] answer atomics(experiment& e);
/// Image filters whose weights each device has, or that lie in one memory.
[[nodiscard]] answer filters(experiment& e);

}  // namespace hpe::bench::remote
