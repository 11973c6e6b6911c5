#pragma once

#include <array>

namespace hpe {

/// The variables in which mpirun and Slurm tell a process its rank; the first that is set counts.
inline constexpr std::array rank_variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

/// The number of this process among the ranks of its MPI job, as mpirun or Slurm tell by the environment; nullptr where
/// neither started it.
[[nodiscard]] const char* rank_by_environment() noexcept;

}  // namespace hpe
