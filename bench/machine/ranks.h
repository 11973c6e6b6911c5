#pragma once

/// Messages between two ranks of MPI, where mpirun started several. Two files implement it: one where hpe is built with
/// MPI, and one that finds no ranks.

#include <cstddef>
#include <optional>

#include "apps/predict/machine_profile.h"

namespace hpe::bench {

struct message_rates {
  bool leads = true;  ///< whether this process measures everything else: rank 0, or a process without MPI
  std::optional<predict::network> on_one_machine, between_machines;  ///< known to the process that leads
};

/// Measures the latency of an empty message and the rate of messages of this size, in host memory. To be called once.
[[nodiscard]] message_rates measure_messages(std::size_t bytes, unsigned repeats);

}  // namespace hpe::bench
