#include "interpose/mpi/messages/message.h"

#include <utility>

#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/message_progress.h"

// Each start of an operation ends in end(). end() stores the results, sets over_, after which other threads may read
// the results, and completes the generalised request. The generalised request itself never returns an error, because
// MPI would pass the error to the error handler of MPI_COMM_WORLD. Instead, the wrappers call finish() when a request
// has completed, and finish() passes the error to the error handler of the operation's communicator.

namespace hpe::interpose::mpi {

struct message_callbacks {
  using reference = std::shared_ptr<message>;

  static int query(void* state, MPI_Status* status) {
    const message& m = **static_cast<reference*>(state);
    const int error = status->MPI_ERROR;
    *status = m.status_;
    status->MPI_ERROR = error;
    return MPI_SUCCESS;
  }
  static int free(void* state) {
    delete static_cast<reference*>(state);
    return MPI_SUCCESS;
  }
  // The wrapper of MPI_Cancel has called message::cancel(). A callback of MPICH must not call MPI with several threads.
  static int cancel(void*, int) { return MPI_SUCCESS; }
};

void record_part(const char* name, trace::clock::time_point begin, std::size_t bytes) noexcept {
  if (trace::recorder* const to = trace::recorder::active())
    to->add(trace::category::mpi, name, trace::this_thread(), begin, trace::clock::now(), bytes);
}

message::message(MPI_Comm comm, bool persistent)
    : pending(on_comm{comm}, persistent), current_(handles::get().request_null) {}

int message::open(MPI_Request* request) {
  if (persistent) {
    if (const int failed = make(); failed != MPI_SUCCESS) return failed;
    // The program's handle, which MPI never starts. It is no receive from MPI_PROC_NULL, because in MPICH 4.0.2, later
    // persistent collectives do not end after such a request has been freed.
    const int result = HPE_REAL(Recv_init)(nullptr, 0, handles::get().byte, 0, 0, job::current()->self, request);
    if (result == MPI_SUCCESS) pending_table::all().add(*request, shared_from_this());
    return result;
  }
  const int result = start_with_request();
  if (result == MPI_SUCCESS) {
    *request = current_;
    pending_table::all().add(*request, shared_from_this());
  }
  return result;
}

int message::start_with_request() {
  prepare();
  const progress::guard held;
  auto* const reference = new message_callbacks::reference(shared_from_this());
  HPE_REAL(Grequest_start)
  (message_callbacks::query, message_callbacks::free, message_callbacks::cancel, reference, &current_);
  has_request_ = true;
  over_ = false;
  code_ = MPI_SUCCESS;
  failure_.reset();
  try {
    const int result = start_or_end();
    if (result != MPI_SUCCESS) HPE_REAL(Request_free)(&current_);
    return result;
  } catch (...) {
    HPE_REAL(Request_free)(&current_);
    throw;
  }
}

int message::start_or_end() {
  progress::of_process().begun();
  try {
    const int result = start();
    if (result == MPI_SUCCESS || over()) return MPI_SUCCESS;
    conclude({}, MPI_SUCCESS);
    return result;
  } catch (...) {
    conclude({}, MPI_SUCCESS);
    throw;
  }
}

int message::carry_out(MPI_Status* status) {
  const int result = launch();
  return result == MPI_SUCCESS ? wait(status) : result;
}

int message::launch() {
  prepare();
  const progress::guard held;
  over_ = false;
  return start_or_end();
}

int message::wait(MPI_Status* status) {
  progress::of_process().until([this] { return over(); });
  if (status != MPI_STATUS_IGNORE) {
    const int error = status->MPI_ERROR;
    *status = status_;
    status->MPI_ERROR = error;
  }
  return finish(nullptr);
}

int message::begin() {
  receive_inspection::notice();
  if (object() == mpi_object(no_object{})) return raise(no_object{}, MPI_ERR_COMM);  // the program has disconnected it
  return raise_errors(object(), [&] { return start_with_request(); });
}

int message::finish(const MPI_Status*) {
  if (!over()) return MPI_SUCCESS;
  if (failure_) {
    code_ = raise(object(), *std::exchange(failure_, std::nullopt));
  } else if (std::exchange(tell_code_, false)) {
    raise(object(), code_);
  }
  return code_;
}

bool message::active() { return !over(); }

void message::cancel() {
  const progress::guard held;
  if (!over()) cancel_started();
}

MPI_Request message::stand_in() { return persistent ? current_ : handles::get().request_null; }

void message::stand_in_gone() { current_ = handles::get().request_null; }

void message::conclude(const MPI_Status& status, int code) {
  code_ = code;
  end(status);
}

void message::conclude(const MPI_Status& status, const std::optional<error>& failure) {
  failure_ = failure;
  end(status);
}

void message::conclude_with_new_error(const MPI_Status& status, int code) {
  code_ = code;
  tell_code_ = true;
  end(status);
}

void message::end(const MPI_Status& status) {
  status_ = status;
  const auto self = shared_from_this();
  const MPI_Request mine = current_;
  const bool has_request = std::exchange(has_request_, false);
  over_.store(true, std::memory_order_release);
  if (has_request) HPE_REAL(Grequest_complete)(mine);
  // Last, because a thread of the program that waits blocks in MPI once no operation of hpe goes on, and MPI could then
  // wait for the request above.
  progress::of_process().over();
}

}  // namespace hpe::interpose::mpi
