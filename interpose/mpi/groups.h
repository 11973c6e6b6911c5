#pragma once

/// The words of functions.txt about communicators: whose bytes a collective call uses. With intercommunicators the
/// other members are those of the remote group. All throw left_to_mpi for a null communicator.

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether it is an intracommunicator; a null one is not.
[[nodiscard]] bool is_intra(MPI_Comm comm);

/// The members from which and to which each member's parts go.
[[nodiscard]] int members(MPI_Comm comm);
[[nodiscard]] int local_members(MPI_Comm comm);
[[nodiscard]] int rank_in(MPI_Comm comm);

/// Whether the caller's arguments are the root's.
[[nodiscard]] bool is_root(MPI_Comm comm, int root);
/// Whether it takes part as one of those that the root collects from or sends to; in an intracommunicator all do.
[[nodiscard]] bool is_leaf(MPI_Comm comm, int root);

/// Neighbours in a topology. left_to_mpi if there is none.
[[nodiscard]] int sources(MPI_Comm comm);
[[nodiscard]] int destinations(MPI_Comm comm);

}  // namespace hpe::interpose::mpi
