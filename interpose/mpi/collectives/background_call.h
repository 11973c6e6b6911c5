#pragma once

/// A non-blocking collective call as messages. Its steps follow one another while the program is in calls of MPI.

#include <functional>
#include <vector>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

/// Adds messages to an exchange; the next step begins when these are over. Returns false, without messages, to be
/// called again later. May throw hpe::error: the call then goes on with the next step, and fails in the end. Must not
/// wait for other ranks.
using call_step = std::function<bool(exchange&)>;

/// Begins a call with at least one step. Returns the result of the program's call.
[[nodiscard]] int begin_in_background(const exchange::ranks& who, MPI_Comm comm, MPI_Request* request,
                                      std::vector<call_step> steps);

}  // namespace hpe::interpose::mpi
