#pragma once

/// Evaluates the expressions of functions.txt about communicators: with which processes a collective call exchanges
/// data. In an intercommunicator, a process exchanges data with the remote group. All functions except is_intra throw
/// left_to_mpi for a null communicator.

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether comm is an intracommunicator; false for a null communicator.
[[nodiscard]] bool is_intra(MPI_Comm comm);

/// The size of the group with which each process exchanges data: in an intercommunicator, the remote group.
[[nodiscard]] int members(MPI_Comm comm);
[[nodiscard]] int local_members(MPI_Comm comm);
[[nodiscard]] int rank_in(MPI_Comm comm);

/// Whether the calling process is the root.
[[nodiscard]] bool is_root(MPI_Comm comm, int root);
/// Whether the root collects data from the calling process or sends data to it. In an intracommunicator this is true
/// for every process, including the root.
[[nodiscard]] bool is_leaf(MPI_Comm comm, int root);

/// The number of neighbours in the topology of comm from which the process receives (sources) or to which it sends
/// (destinations). Both functions throw left_to_mpi if comm has no topology.
[[nodiscard]] int sources(MPI_Comm comm);
[[nodiscard]] int destinations(MPI_Comm comm);

}  // namespace hpe::interpose::mpi
