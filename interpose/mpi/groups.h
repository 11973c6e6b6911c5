#pragma once

/// The expressions of functions.txt about communicators: which processes' bytes a collective call uses. In an
/// intercommunicator, a process exchanges data with the remote group. All functions but is_intra throw left_to_mpi for
/// a null communicator.

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether comm is an intracommunicator; false for a null communicator.
[[nodiscard]] bool is_intra(MPI_Comm comm);

/// The size of the group with which each process exchanges data: the remote group of an intercommunicator.
[[nodiscard]] int members(MPI_Comm comm);
[[nodiscard]] int local_members(MPI_Comm comm);
[[nodiscard]] int rank_in(MPI_Comm comm);

/// Whether the calling process is the root.
[[nodiscard]] bool is_root(MPI_Comm comm, int root);
/// Whether the root collects from or sends to the calling process; in an intracommunicator always (the root included).
[[nodiscard]] bool is_leaf(MPI_Comm comm, int root);

/// The numbers of neighbours in the topology of comm. Throw left_to_mpi if comm has no topology.
[[nodiscard]] int sources(MPI_Comm comm);
[[nodiscard]] int destinations(MPI_Comm comm);

}  // namespace hpe::interpose::mpi
