#pragma once

/// Predicts the time of a launch from sampled traffic (traffic.h), for one cut of the grid and given homes of the
/// arrays (launch.h); and the cost of a kernel's start.

#include <span>

#include "runtime/spread/link_rates.h"
#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// The memory that contains an array during the launch.
struct array_place {
  const std::vector<home_run>* homes = nullptr;  // null for memory in no allocation that hpe knows: host memory
  bool is_replicated = false;                    // if true, every device reads its own replica
};

struct cost {
  double seconds = 0;
  double local_bytes = 0, remote_bytes = 0, host_bytes = 0;
  double imbalance = 0;  // blocks of the largest part / mean blocks of a part - 1

  [[nodiscard]] double remote_share() const {
    const double all = local_bytes + remote_bytes + host_bytes;
    return all > 0 ? remote_bytes / all : 0;
  }
};

/// Returns, for each sampled block, the number of blocks of its part that it represents.
[[nodiscard]] std::vector<double> weights_of(const traffic& t, const cut& c);

/// Predicts the cost of a launch. `places` has one element for each pointer of the kernel (kernel_model::pointers).
/// Assumes that touches of an unknown allocation are distributed evenly over the devices.
[[nodiscard]] cost predict(const traffic& t, const cut& c, std::span<const array_place> places, const machine& m);

/// The one-time cost of a kernel's first launch over several devices, which loads code and prepares devices.
struct start_cost {
  double kernel_seconds = 0;   // to load this kernel's code
  double process_seconds = 0;  // in addition, for the first spread kernel of the process
};

/// Returns this cost for a kernel whose patched code has `bytes` bytes of text, in a process that starts `others` GPUs
/// in addition to the program's own.
[[nodiscard]] start_cost start_cost_of_gpus(std::size_t bytes, unsigned others);

}  // namespace hpe::spread
