#pragma once

/// The functions that differ between MPI libraries. open_mpi.cpp, mpich.cpp and standard_abi.cpp each implement these
/// functions, or link a file that does, and handles::get() (real.h).

#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether `request` is a constant that MPI returns for all operations that complete at once. Several operations can
/// have this request at the same time.
[[nodiscard]] bool stands_for_many(MPI_Request request) noexcept;

/// Whether MPI_Request_get_status calls no error handler for a failed operation. hpe may then call
/// MPI_Request_get_status at any time.
[[nodiscard]] bool status_is_silent() noexcept;

/// Whether MPI_Error_string returns the string that MPI_Add_error_string has added, even for an error code of a
/// predefined class.
[[nodiscard]] bool shows_added_strings() noexcept;

/// Whether call_in_progress() can succeed. May be called before MPI_Init.
[[nodiscard]] bool calls_while_it_waits() noexcept;
/// Makes the MPI library call `each` whenever an MPI function waits or tests. Returns the MPI library's own function
/// that makes progress once; nullptr if the MPI library does not support this. Call this only once.
using progress_function = void (*)();
[[nodiscard]] progress_function call_in_progress(int (*each)());

/// The constructor of a datatype, and the numbers of the constructor's arguments.
struct type_envelope {
  int combiner = MPI_COMBINER_NAMED;
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;  ///< the number of arguments of type MPI_Count (MPI 4)
  MPI_Count types = 0;

  [[nodiscard]] bool is_derived() const noexcept { return combiner != MPI_COMBINER_NAMED && types != 0; }
};
[[nodiscard]] type_envelope envelope_of(MPI_Datatype type);

/// The arguments of the call that created a datatype, in the form of MPI_Type_get_contents. Arguments of type MPI_Count
/// are stored in `integers` and `addresses`, where the constructor with int arguments has them. The lists are empty for
/// a predefined datatype. The caller must free the derived datatypes in `types`.
struct type_contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Count> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};
[[nodiscard]] type_contents contents_of(MPI_Datatype type);

/// Like envelope_of and contents_of, but these functions call only functions of MPI 3, which all MPI libraries define.
[[nodiscard]] type_envelope envelope_with_int(MPI_Datatype type);
[[nodiscard]] type_contents contents_with_int(MPI_Datatype type);

}  // namespace hpe::interpose::mpi
