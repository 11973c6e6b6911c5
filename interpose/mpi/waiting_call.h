#pragma once

#include "runtime/trace/stalls.h"

namespace hpe::interpose::mpi {

/// A function of MPI, and which of its arguments say what it waits for: a rank and a tag, mostly. A constant.
struct named_call {
  const char* function;
  const char* first = nullptr;
  const char* second = nullptr;
};

/// While it lives, the calling thread is in a function of MPI that may wait for other ranks: HPE_STALL_AFTER.
class waiting_call : trace::awaited {
 public:
  explicit waiting_call(const named_call& what, int first = 0, int second = 0) noexcept;
};

}  // namespace hpe::interpose::mpi
