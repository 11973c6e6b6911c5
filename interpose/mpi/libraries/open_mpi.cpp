// The implementation of library.h for Open MPI 4 and 5. Handles are addresses of variables of the Open MPI library.

#include <dlfcn.h>

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

namespace {

// Returns the address of a variable. If the program contains a copy of the variable (a copy relocation), the MPI
// library uses this copy, so RTLD_DEFAULT is searched first.
template <class Handle>
Handle handle(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  return static_cast<Handle>(found != nullptr ? found : find_in_library(name));
}

}  // namespace

const handles& handles::get() {
  static const handles all{
      .comm_world = handle<MPI_Comm>("ompi_mpi_comm_world"),
      .comm_self = handle<MPI_Comm>("ompi_mpi_comm_self"),
      .comm_null = handle<MPI_Comm>("ompi_mpi_comm_null"),
      .byte = handle<MPI_Datatype>("ompi_mpi_byte"),
      .integer = handle<MPI_Datatype>("ompi_mpi_int"),
      .packed = handle<MPI_Datatype>("ompi_mpi_packed"),
      .datatype_null = handle<MPI_Datatype>("ompi_mpi_datatype_null"),
      .errors_return = handle<MPI_Errhandler>("ompi_mpi_errors_return"),
      .file_null = handle<MPI_File>("ompi_mpi_file_null"),
      .info_null = handle<MPI_Info>("ompi_mpi_info_null"),
      .message_null = handle<MPI_Message>("ompi_message_null"),
      .bit_or = handle<MPI_Op>("ompi_mpi_op_bor"),
      .max = handle<MPI_Op>("ompi_mpi_op_max"),
      .min = handle<MPI_Op>("ompi_mpi_op_min"),
      .product = handle<MPI_Op>("ompi_mpi_op_prod"),
      .sum = handle<MPI_Op>("ompi_mpi_op_sum"),
      .request_null = handle<MPI_Request>("ompi_request_null"),
      .win_null = handle<MPI_Win>("ompi_mpi_win_null"),
  };
  return all;
}

bool stands_for_many(MPI_Request request) noexcept {
  static const auto empty = handle<MPI_Request>("ompi_request_empty");
  return request == empty;
}

bool status_is_silent() noexcept { return true; }
bool shows_added_strings() noexcept { return true; }

type_envelope envelope_of(MPI_Datatype type) { return envelope_with_int(type); }
type_contents contents_of(MPI_Datatype type) { return contents_with_int(type); }

}  // namespace hpe::interpose::mpi
