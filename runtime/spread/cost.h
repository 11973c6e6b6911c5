#pragma once

/// The predicted time of a launch, from sampled traffic, for a cut of the grid and homes of the arrays.

#include <span>

#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// Where an array is during the launch.
struct array_place {
  const std::vector<home_run>* homes = nullptr;  // null: a pointer to no known memory, taken for host memory
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

/// How many blocks of its part each sampled block stands for.
[[nodiscard]] std::vector<double> weights_of(const traffic& t, const cut& c);

/// The part of a cut that a block belongs to.
[[nodiscard]] std::size_t part_of(const cut& c, const dimension& block);

/// `places` has one entry for each pointer of the kernel.
[[nodiscard]] cost predict(const traffic& t, const cut& c, std::span<const array_place> places, const machine& m);

}  // namespace hpe::spread
