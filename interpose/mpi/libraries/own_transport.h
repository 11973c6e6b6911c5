#pragma once

#include <string>

namespace hpe::interpose::mpi {

/// Returns the name of the transport by which the MPI library itself transfers memory of the CUDA driver, for example
/// "ucx"; an empty text if the library answers that it does not accept this memory, or if its transport copies the
/// memory through the host anyway. Call this after MPI_Init, in which the library chooses its transport.
[[nodiscard]] std::string own_transport();

}  // namespace hpe::interpose::mpi
