#include "interpose/mpi/reduction_operation.h"

#include <algorithm>

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

bool operation::uses_hpe() const noexcept {
  return failed() || std::any_of(buffers_.begin(), buffers_.end(), [](const staged_buffer& b) { return b.staged(); });
}

std::shared_ptr<staged_pending> operation::make_pending() {
  return std::make_shared<staged_pending>(object_, std::move(buffers_), received_, kind_ == operation_kind::persistent,
                                          std::move(failure_));
}

int operation::finish(const MPI_Status* status) {
  if (failed()) return raise(object_, *failure_);
  for (staged_buffer& b : buffers_) received_&& status != nullptr ? b.written(bytes_received(*status)) : b.written();
  return MPI_SUCCESS;
}

int operation::started(MPI_Request* request) {
  if (!uses_hpe()) return MPI_SUCCESS;
  return started(request, make_pending());
}

// Adds an operation to the pending operations. If MPI allows to check at this point whether the operation is complete,
// and it is complete, finishes the operation at once instead.
int operation::started(MPI_Request* request, std::shared_ptr<staged_pending> it) {
  MPI_Status status;
  const bool looks = stands_for_many(*request) || (status_is_silent() && it->known_when_complete());
  if (looks && is_complete(*request, status)) return it->finish(&status);
  pending_table::all().add(*request, std::move(it));
  return MPI_SUCCESS;
}

}  // namespace hpe::interpose::mpi
