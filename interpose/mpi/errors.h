#pragma once

/// Reports failures of hpe itself (a lost device, freed memory) to an MPI program as MPI errors, through the error
/// handler of the communicator, window or file in the call.

#include <variant>

#include "hpe/error.hpp"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Used for calls without a communicator, window or file; the errors of these calls are raised on MPI_COMM_WORLD.
struct no_object {
  friend bool operator==(no_object, no_object) = default;
};
/// Each kind of handle has its own type, because in some MPI libraries MPI_Comm and MPI_Win are both int.
struct on_comm {
  MPI_Comm comm;
  friend bool operator==(on_comm, on_comm) = default;
};
struct on_win {
  MPI_Win win;
  friend bool operator==(on_win, on_win) = default;
};
struct on_file {
  MPI_File file;
  friend bool operator==(on_file, on_file) = default;
};
using mpi_object = std::variant<no_object, on_comm, on_win, on_file>;

/// Calls the object's error handler. If the handler returns, returns the error code for the result of the MPI call. For
/// that code, MPI_Error_string returns the message of `what`. The error class is MPI_ERR_BUFFER if the call cannot use
/// the memory, MPI_ERR_NO_MEM if memory ran out, and otherwise MPI_ERR_OTHER.
int raise(const mpi_object& object, const error& what);
/// Calls the object's error handler with an existing MPI error code and returns the code.
int raise(const mpi_object& object, int code);

}  // namespace hpe::interpose::mpi
