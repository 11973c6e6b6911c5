#pragma once

/// Measures a workload: through hpe on 1, 2 and 4 devices, by hand with each scheme, and the strongest peer.

#include <map>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "bench/workloads/program.h"

namespace hpe::bench {

struct comparison {
  std::vector<result> rows;
  chart speed_up;  ///< relative to one device through hpe, by number of devices: Figure 5.8 of the thesis
  chart exchange;  ///< the fraction of its time that a program saves if it copies nothing: Figure 5.9
};

/// Measures one workload. Throws std::runtime_error if the results of two versions differ.
[[nodiscard]] comparison compare(const workload& what, unsigned repeats);

}  // namespace hpe::bench
