#pragma once

/// The interface for everything that differs between MPI libraries. open_mpi.cpp and mpich.cpp each implement it, and
/// also handles::get() (real.h).

#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether this is the request that MPI returns for every operation that was already complete when it began.
[[nodiscard]] bool stands_for_many(MPI_Request request) noexcept;

/// Whether MPI_Request_get_status calls no error handler for a failed operation, so that hpe may call it at any time.
[[nodiscard]] bool status_is_silent() noexcept;

/// Whether MPI_Error_string returns an added string even for an error code of a predefined class.
[[nodiscard]] bool shows_added_strings() noexcept;

/// Registers `each` with the MPI library, which then calls it whenever an MPI function waits or tests. Returns MPI's
/// own function that makes progress once; nullptr if the library does not support this. To be called only once.
using progress_function = void (*)();
[[nodiscard]] progress_function call_in_progress(int (*each)());

/// How a datatype was made: the constructor and the numbers of its arguments.
struct type_envelope {
  int combiner = MPI_COMBINER_NAMED;
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;  ///< number of counts that may exceed an int (MPI 4)
  MPI_Count types = 0;

  [[nodiscard]] bool is_derived() const noexcept { return combiner != MPI_COMBINER_NAMED && types != 0; }
};
[[nodiscard]] type_envelope envelope_of(MPI_Datatype type);

/// The arguments of the call that made a datatype, as MPI_Type_get_contents returns them. Constructors with counts
/// beyond int are represented like the other constructors. The lists are empty for a predefined datatype. The caller
/// must free the derived datatypes in `types`.
struct type_contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Count> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};
[[nodiscard]] type_contents contents_of(MPI_Datatype type);

/// Like envelope_of and contents_of, but call only functions of MPI 3, which exist in all libraries.
[[nodiscard]] type_envelope envelope_with_int(MPI_Datatype type);
[[nodiscard]] type_contents contents_with_int(MPI_Datatype type);

}  // namespace hpe::interpose::mpi
