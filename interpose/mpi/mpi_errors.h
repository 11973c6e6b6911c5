#pragma once

/// Reports errors of hpe (for example a lost device) to MPI programs as MPI errors, through the error handler of the
/// communicator, window or file in the call.

#include <new>
#include <string>
#include <type_traits>
#include <variant>

#include "hpe/error.hpp"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// For calls without a communicator, window or file. hpe calls the error handler of MPI_COMM_WORLD for errors of these
/// calls.
struct no_object {
  friend bool operator==(no_object, no_object) = default;
};
/// Each kind of handle has its own struct, because in MPICH, MPI_Comm and MPI_Win are both int.
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

/// Calls the error handler of the communicator, window or file `object`. If the handler returns, raise() returns the
/// error code that the MPI call must return. For this code, MPI_Error_string returns the message of the last error with
/// the same hpeStatus. The error class is MPI_ERR_BUFFER if the call cannot use the program's memory, MPI_ERR_NO_MEM if
/// an allocation failed, and otherwise MPI_ERR_OTHER.
int raise(const mpi_object& object, const error& what);
/// Calls the error handler of `object` with an MPI error code, and returns this code.
int raise(const mpi_object& object, int code);

/// Runs action() and returns its result, whose type an MPI error code must convert to. If action() throws hpe::error or
/// std::bad_alloc, calls raise(). `lacked`: for what the host has no memory left, the end of the message.
template <class Action>
std::invoke_result_t<Action> raise_errors(const mpi_object& object, Action&& action,
                                          const char* lacked = "for the records of a call") {
  try {
    return action();
  } catch (const error& e) {
    return raise(object, e);
  } catch (const std::bad_alloc&) {
    return raise(object, error(HPE_ERROR_OUT_OF_MEMORY, std::string("the host has no memory left ") + lacked));
  }
}

}  // namespace hpe::interpose::mpi
