#pragma once

#include "runtime/trace/stalls.h"

namespace hpe::interpose::mpi {

/// An MPI function, with the names of the arguments that describe the function's wait (mostly rank and tag). The object
/// must be a constant.
struct named_call {
  const char* function;
  const char* first = nullptr;
  const char* second = nullptr;
};

/// While the object exists, reports of long waits (HPE_STALL_AFTER) say that the calling thread is in an MPI function
/// that may wait for other ranks.
class waiting_call : trace::awaited {
 public:
  explicit waiting_call(const named_call& what, int first = 0, int second = 0) noexcept;
};

}  // namespace hpe::interpose::mpi
