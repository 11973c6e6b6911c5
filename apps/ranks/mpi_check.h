#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <string>

#include "hpe/error.hpp"

namespace hpe::ranks {

/// For the status of each call of MPI: throws hpe::error (HPE_ERROR_SYSTEM) with the name of the call and MPI's
/// sentence if it failed. MPI ends the program itself unless MPI_ERRORS_RETURN is set for the communicator.
inline void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw error(HPE_ERROR_SYSTEM, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace hpe::ranks
