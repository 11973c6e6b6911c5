#pragma once

/// How failures of hpe itself (a lost device, memory that was freed) reach an MPI program: as an MPI error of the
/// object that the call names, by its error handler.

#include <variant>

#include "hpe/error.hpp"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// A call that names none: errors go to MPI_COMM_WORLD.
struct no_object {
  friend bool operator==(no_object, no_object) = default;
};
using mpi_object = std::variant<no_object, MPI_Comm, MPI_Win, MPI_File>;

/// Calls the object's error handler and returns what the call returns if that comes back. The error's string
/// (MPI_Error_string) is the sentence; its class is MPI_ERR_BUFFER for memory that is not what the call needs,
/// MPI_ERR_NO_MEM, or MPI_ERR_OTHER.
int raise(const mpi_object& object, const error& what);
/// The same with an error of MPI's own.
int raise(const mpi_object& object, int code);

}  // namespace hpe::interpose::mpi
