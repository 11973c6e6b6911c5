#pragma once

/// Predicts the time of a launch from sampled traffic, for one cut of the grid and given homes of the arrays.

#include <span>

#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// The memory in which an array is during the launch.
struct array_place {
  const std::vector<home_run>* homes = nullptr;  // null: the memory is not known and counts as host memory
  bool is_replicated = false;                    // reads are local
};

struct cost {
  double seconds = 0;
  double local_bytes = 0, remote_bytes = 0, host_bytes = 0;
  double imbalance = 0;  // largest part / mean part - 1

  [[nodiscard]] double remote_share() const {
    const double all = local_bytes + remote_bytes + host_bytes;
    return all > 0 ? remote_bytes / all : 0;
  }
};

/// For each sampled block: how many blocks of its part the sampled block represents.
[[nodiscard]] std::vector<double> weights_of(const traffic& t, const cut& c);

/// The number of the part that contains a block.
[[nodiscard]] std::size_t part_of(const cut& c, const dimension& block);

/// Predicts the cost of a launch. `places` has one entry for each pointer of the kernel.
[[nodiscard]] cost predict(const traffic& t, const cut& c, std::span<const array_place> places, const machine& m);

}  // namespace hpe::spread
