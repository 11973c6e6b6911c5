#pragma once

namespace hpe {

/// The rank of this process in its MPI job, from the environment that mpirun or Slurm sets; nullptr if neither started
/// the process.
[[nodiscard]] const char* rank_by_environment() noexcept;

}  // namespace hpe
