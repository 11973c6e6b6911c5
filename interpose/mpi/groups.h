#pragma once

/// Functions for the expressions in functions.txt that depend on a communicator. All functions except is_intra throw
/// left_to_mpi for a null communicator.

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether comm is an intracommunicator; false for a null communicator.
[[nodiscard]] bool is_intra(MPI_Comm comm);

/// Returns the size of the group with which a process exchanges data in a collective call: in an intercommunicator, the
/// remote group; otherwise the group of the communicator. local_members() returns the size of the process's own group.
[[nodiscard]] int members(MPI_Comm comm);
[[nodiscard]] int local_members(MPI_Comm comm);
[[nodiscard]] int rank_in(MPI_Comm comm);

/// Whether the calling process is the root.
[[nodiscard]] bool is_root(MPI_Comm comm, int root);
/// Whether the root receives data from the calling process or sends data to it. In an intracommunicator, this is true
/// for every process, including the root.
[[nodiscard]] bool is_leaf(MPI_Comm comm, int root);

/// Return the number of neighbours in the topology of comm from which the process receives (sources) or to which it
/// sends (destinations). Both functions throw left_to_mpi if comm has no topology.
[[nodiscard]] int sources(MPI_Comm comm);
[[nodiscard]] int destinations(MPI_Comm comm);

}  // namespace hpe::interpose::mpi
