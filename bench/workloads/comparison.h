#pragma once

/// Measures a workload through hpe on 1, 2 and 4 devices, and by hand with each copy scheme on 2 and 4 devices. On soft
/// devices, also measures the fastest library, with as many threads as the largest of these numbers of devices has.

#include <map>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

struct comparison {
  std::vector<result> rows;
  chart speed_up;  ///< the speed-up relative to one device through hpe, by number of devices: Figure 5.8 of the thesis
  chart exchange;  ///< the share of its time that the hand-written program saves if it copies nothing: Figure 5.9
};

/// Measures one workload. Throws std::runtime_error if the results of two versions differ.
[[nodiscard]] comparison compare(const workload& what, unsigned repeats);

}  // namespace hpe::bench
