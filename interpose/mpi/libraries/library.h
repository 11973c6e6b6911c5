#pragma once

/// The differences between MPI libraries: open_mpi.cpp and mpich.cpp implement it, and handles::get() (real.h).

#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether MPI returns this one request for many operations, which were all complete when they began.
[[nodiscard]] bool stands_for_many(MPI_Request request) noexcept;

/// Whether MPI_Request_get_status of a failed operation calls no error handler, so that hpe may look at any time.
[[nodiscard]] bool status_is_silent() noexcept;

/// Whether MPI shows a string that was added for an error code if the code belongs to a predefined class.
[[nodiscard]] bool shows_added_strings() noexcept;

/// Lets MPI call `each` wherever its functions wait or test. Returns MPI's own function that makes progress once;
/// nullptr if the library cannot do this. Call it once.
using progress_function = void (*)();
[[nodiscard]] progress_function call_in_progress(int (*each)());

/// How a datatype was made.
struct type_envelope {
  int combiner = MPI_COMBINER_NAMED;
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;  ///< counts beyond int, of MPI 4
  MPI_Count types = 0;

  [[nodiscard]] bool is_derived() const noexcept { return combiner != MPI_COMBINER_NAMED && types != 0; }
};
[[nodiscard]] type_envelope envelope_of(MPI_Datatype type);

/// The arguments of the call that made a datatype, as MPI_Type_get_contents gives them: the functions with counts
/// beyond int do not differ from the others. Empty for a predefined datatype. The caller frees the derived datatypes.
struct type_contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<MPI_Count> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};
[[nodiscard]] type_contents contents_of(MPI_Datatype type);

/// Both by the functions of MPI 3, which all libraries have.
[[nodiscard]] type_envelope envelope_with_int(MPI_Datatype type);
[[nodiscard]] type_contents contents_with_int(MPI_Datatype type);

}  // namespace hpe::interpose::mpi
