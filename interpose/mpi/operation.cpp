#include "interpose/mpi/operation.h"

#include <algorithm>

namespace hpe::interpose::mpi {

bool operation::uses_hpe() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(), [](const staged_buffer& b) { return b.staged(); });
}

std::shared_ptr<pending> operation::make_pending() {
  return std::make_shared<pending>(object_, std::move(buffers_), received_, persistent_);
}

void operation::finish(const MPI_Status* status) {
  for (staged_buffer& b : buffers_) received_&& status != nullptr ? b.written(bytes_received(*status)) : b.written();
}

int operation::started(MPI_Request* request) {
  if (!uses_hpe()) return MPI_SUCCESS;
  return started(request, make_pending());
}

// What is over already is put in place at once. That also takes care of requests which stand for many: MPI gives the
// same one to all operations that were complete when they began.
int operation::started(MPI_Request* request, std::shared_ptr<pending> it) {
  int flag = 0;
  MPI_Status status;
  if (HPE_REAL(Request_get_status)(*request, &flag, &status) == MPI_SUCCESS && flag != 0) return it->finish(&status);
  pending_table::all().add(*request, std::move(it));
  return MPI_SUCCESS;
}

}  // namespace hpe::interpose::mpi
