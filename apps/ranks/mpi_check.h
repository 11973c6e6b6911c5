#pragma once

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <string>

#include "hpe/error.hpp"

namespace hpe::ranks {

/// Checks the status of an MPI call. If the call failed, throws hpe::error (HPE_ERROR_SYSTEM) with the name of the call
/// and MPI's error text. Unless MPI_ERRORS_RETURN is set for the communicator, MPI itself ends the program.
inline void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw error(HPE_ERROR_SYSTEM, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace hpe::ranks
