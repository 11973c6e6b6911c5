#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include "apps/imaging/imaging_team.h"

namespace hpe::imaging {

/// Returns a team of all processes of MPI_COMM_WORLD; the requested number of devices is ignored. MPI itself transfers
/// bytes between devices, by device pointers. The caller initialises and finalises MPI.
[[nodiscard]] std::unique_ptr<team> make_ranks(std::int64_t devices);

}  // namespace hpe::imaging
