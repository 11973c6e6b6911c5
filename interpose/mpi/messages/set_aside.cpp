#include "interpose/mpi/messages/set_aside.h"

#include <algorithm>
#include <memory>

#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/pending.h"

// look_into() receives a message that hpe has taken out of MPI. The program's MPI_Mrecv needs a message handle of MPI,
// so look_into() then sends a copy of the message to this process itself, on hpe's own communicator, and matches the
// copy.

namespace hpe::interpose::mpi {

void matched::consume() {
  envelope::wire nowhere;
  HPE_REAL(Mrecv)(nowhere.data(), envelope_bytes, handles::get().byte, &handle, MPI_STATUS_IGNORE);
}

void matched::correct(MPI_Status& said) const {
  if (!looked_into) return;
  said.MPI_SOURCE = status.MPI_SOURCE;
  said.MPI_TAG = status.MPI_TAG;
}

set_aside& set_aside::of_process() {
  static auto* const it = new set_aside;
  return *it;
}

set_aside::messages::iterator set_aside::first(MPI_Comm comm, int source, int tag) {
  return std::find_if(messages_.begin(), messages_.end(), [&](const matched& m) {
    return m.comm == comm && (source == MPI_ANY_SOURCE || source == m.status.MPI_SOURCE) &&
           (tag == MPI_ANY_TAG || tag == m.status.MPI_TAG);
  });
}

void set_aside::take_from_mpi(const MPI_Status& met, MPI_Comm comm) {
  while (true) {
    // Allocated first, because a message that MPI has matched cannot be put back if the allocation fails.
    messages one(1);
    int there = 0;
    MPI_Message handle{};
    MPI_Status status;
    if (HPE_REAL(Improbe)(met.MPI_SOURCE, MPI_ANY_TAG, comm, &there, &handle, &status) != MPI_SUCCESS || there == 0)
      return;
    one.front() = {comm, status, handle, false, std::nullopt};
    if (envelope::is_length(bytes_received(status))) one.front() = look_into(handle, status, comm);
    const lock_guard lock(mutex_);
    messages_.splice(messages_.end(), one);
    ++count_;
    if (status.MPI_TAG == met.MPI_TAG) return;
  }
}

std::optional<MPI_Status> set_aside::find(MPI_Comm comm, int source, int tag) {
  if (empty()) return std::nullopt;
  const lock_guard lock(mutex_);
  const auto found = first(comm, source, tag);
  return found != messages_.end() ? std::optional(found->status) : std::nullopt;
}

std::optional<matched> set_aside::take(MPI_Comm comm, int source, int tag) {
  if (empty()) return std::nullopt;
  const lock_guard lock(mutex_);
  const auto found = first(comm, source, tag);
  if (found == messages_.end()) return std::nullopt;
  matched result = *found;
  messages_.erase(found);
  --count_;
  return result;
}

matched set_aside::look_into(MPI_Message handle, const MPI_Status& status, MPI_Comm comm) {
  matched result{comm, status, MPI_Message{}, true, std::nullopt};
  const std::size_t length = bytes_received(status);
  auto bytes = std::make_shared<envelope::wire>();  // `then` keeps these bytes until the send has completed
  const progress::guard held;
  progress& all = progress::of_process();
  progress::continuation then = [bytes, &all](const MPI_Status&, int) { all.over(); };
  all.make_room();
  HPE_REAL(Mrecv)(bytes->data(), envelope_bytes, handles::get().byte, &handle, MPI_STATUS_IGNORE);
  result.head = envelope::recognise(bytes->data(), length);
  if (result.head) HPE_REAL(Status_set_elements_x)
  (&result.status, handles::get().byte, static_cast<MPI_Count>(result.head->bytes));
  const MPI_Comm self = job::current()->self;
  MPI_Request request{};
  HPE_REAL(Isend)(bytes->data(), static_cast<int>(length), handles::get().byte, 0, 0, self, &request);
  all.begun();
  all.when_over(request, std::move(then));
  HPE_REAL(Mprobe)(0, 0, self, &result.handle, MPI_STATUS_IGNORE);
  return result;
}

void set_aside::handed_out(const matched& what) {
  if (!what.looked_into) return;
  const lock_guard lock(mutex_);
  handed_out_.insert_or_assign(what.handle, what);
  ++count_;
}

std::optional<matched> set_aside::taken_back(MPI_Message handle) {
  if (empty()) return std::nullopt;
  const lock_guard lock(mutex_);
  auto found = handed_out_.extract(handle);
  if (found.empty()) return std::nullopt;
  --count_;
  return found.mapped();
}

}  // namespace hpe::interpose::mpi
