#pragma once

/// Carries out a non-blocking collective call by messages between ranks. The steps of the call run one after the other,
/// while the program is in calls of MPI.

#include <functional>
#include <vector>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

/// One step of a call: a function that adds messages to an exchange and returns true. The next step begins when these
/// messages have completed. If the step cannot begin yet, the function adds no messages and returns false; it is called
/// again later. If the function throws hpe::error, the call continues with the next step and fails at the end. The
/// function must not wait for other ranks.
using call_step = std::function<bool(exchange&)>;

/// Begins a call of at least one step, and stores its request in `*request`. Returns the result of the program's call.
[[nodiscard]] int begin_in_background(const exchange::ranks& who, MPI_Comm comm, MPI_Request* request,
                                      std::vector<call_step> steps);

}  // namespace hpe::interpose::mpi
