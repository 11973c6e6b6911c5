#pragma once

#include <array>

namespace hpe {

/// The variables in which mpirun and Slurm tell a process its rank; the first that is set counts.
inline constexpr std::array rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

/// The rank of this process in its MPI job, from the environment that mpirun or Slurm sets; nullptr if neither started
/// the process.
[[nodiscard]] const char* rank_by_environment() noexcept;

}  // namespace hpe
