#pragma once

namespace hpe {

/// The number of this process among the ranks of its MPI job, as mpirun or Slurm tell by the environment; nullptr where
/// neither started it.
[[nodiscard]] const char* rank_by_environment() noexcept;

}  // namespace hpe
