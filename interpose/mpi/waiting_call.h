#pragma once

#include "runtime/trace/stalls.h"

namespace hpe::interpose::mpi {

/// The name of an MPI function, and the names of up to two arguments that reports of its waits show (mostly rank and
/// tag). The object must exist until the process ends.
struct named_call {
  const char* function;
  const char* first = nullptr;
  const char* second = nullptr;
};

/// While the object exists, reports of long waits (HPE_STALL_AFTER) name the MPI function in which the calling thread
/// is. `first` and `second`: the values of the arguments in named_call.
class waiting_call : trace::awaited {
 public:
  explicit waiting_call(const named_call& what, int first = 0, int second = 0) noexcept;
};

}  // namespace hpe::interpose::mpi
