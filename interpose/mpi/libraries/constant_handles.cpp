// The part of library.h that MPICH's ABI and MPI's standard ABI have in common: predefined handles are constants of
// <mpi.h>.

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

const handles& handles::get() {
  static const handles all{
      .comm_world = MPI_COMM_WORLD,
      .comm_self = MPI_COMM_SELF,
      .comm_null = MPI_COMM_NULL,
      .byte = MPI_BYTE,
      .integer = MPI_INT,
      .packed = MPI_PACKED,
      .datatype_null = MPI_DATATYPE_NULL,
      .errors_return = MPI_ERRORS_RETURN,
      .file_null = MPI_FILE_NULL,
      .info_null = MPI_INFO_NULL,
      .message_null = MPI_MESSAGE_NULL,
      .bit_or = MPI_BOR,
      .max = MPI_MAX,
      .min = MPI_MIN,
      .product = MPI_PROD,
      .sum = MPI_SUM,
      .request_null = MPI_REQUEST_NULL,
      .win_null = MPI_WIN_NULL,
  };
  return all;
}

bool status_is_silent() noexcept { return false; }
bool shows_added_strings() noexcept { return false; }

}  // namespace hpe::interpose::mpi
