#pragma once

/// Makes a non-blocking collective call with messages. The steps of the call run one after the other while the program
/// is in calls of MPI.

#include <functional>
#include <vector>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/messages/point_to_point.h"

namespace hpe::interpose::mpi {

/// One step of a call: a function that adds messages to an exchange. The next step begins when these messages have
/// completed. If the step cannot begin yet, the function returns false without adding messages, and is called again
/// later. The function may throw hpe::error: then the call continues with the next step and fails at the end. The
/// function must not wait for other ranks.
using call_step = std::function<bool(exchange&)>;

/// Begins a call that has at least one step. Returns the result of the program's call.
[[nodiscard]] int begin_in_background(const exchange::ranks& who, MPI_Comm comm, MPI_Request* request,
                                      std::vector<call_step> steps);

}  // namespace hpe::interpose::mpi
