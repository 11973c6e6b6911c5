#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include "apps/imaging/team.h"

namespace hpe::imaging {

/// A team of the processes of MPI_COMM_WORLD, whatever the number of devices that is asked for. Bytes go from device to
/// device by MPI itself, on device pointers. MPI is initialised before, and finalised after.
[[nodiscard]] std::unique_ptr<team> make_ranks(std::int64_t devices);

}  // namespace hpe::imaging
