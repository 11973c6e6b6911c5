#include "interpose/mpi/messages/incoming.h"

#include <cstring>

#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/chunks.h"
#include "interpose/mpi/messages/progress.h"

namespace hpe::interpose::mpi {

incoming::incoming(void* buffer, layout which, MPI_Comm comm, post how, bool persistent)
    : message(comm, persistent), buffer_(buffer), which_(std::move(which)), post_(std::move(how)) {
  if (concerns(buffer)) staged_.emplace(buffer, which_, host_use::write, persistent);
}

incoming::~incoming() {
  if (persistent && request_ != nullptr) HPE_REAL(Request_free)(&request_);
}

void* incoming::place() const noexcept { return staged_ ? staged_->pointer() : buffer_; }

int incoming::make() { return post_(place(), &request_); }

void incoming::prepare() {
  if (persistent && staged_) staged_->refresh();
}

int incoming::start() {
  if (head_) {  // after was_envelope
    fetch(envelope(*head_));
    return MPI_SUCCESS;
  }
  const int result = persistent ? HPE_REAL(Start)(&request_) : post_(place(), &request_);
  if (result != MPI_SUCCESS) return result;
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  progress::of_process().when_over(
      request_, [self](const MPI_Status& status, int code) { self->arrived(status, code); });
  return MPI_SUCCESS;
}

void incoming::cancel() {
  if (!head_) HPE_REAL(Cancel)(&request_);
}

void incoming::arrived(const MPI_Status& status, int code) {
  status_ = status;
  if (!persistent) request_ = nullptr;
  int cancelled = 0;
  HPE_REAL(Test_cancelled)(&status, &cancelled);
  if (code != MPI_SUCCESS || cancelled != 0) return conclude(status, code);
  if (const auto head = find_envelope(status)) return fetch(*head);
  std::optional<error> failure;
  try {
    if (staged_) staged_->written(bytes_received(status));
  } catch (const error& e) {
    failure = e;
  }
  conclude(status, failure);
}

bool incoming::was_envelope(const MPI_Status& status) {
  head_ = find_envelope(status);
  status_ = status;
  if (!head_ && staged_) staged_->written(bytes_received(status));
  return head_.has_value();
}

std::optional<envelope> incoming::find_envelope(const MPI_Status& status) const {
  if (bytes_received(status) != envelope_bytes) return std::nullopt;
  return envelope::recognise(place(), which_);
}

void incoming::fetch(const envelope& head) {
  head_ = head;
  if (!persistent) staged_.reset();
  HPE_REAL(Status_set_elements_x)(&status_, handles::get().byte, static_cast<MPI_Count>(head.bytes));
  channel& answers = channel::of_process();
  if (head.bytes > which_.size()) {
    answers.send({head.sequence, answer::verdict::done}, head.sender);
    head_.reset();
    return conclude_with_new_error(status_, MPI_ERR_TRUNCATE);
  }
  std::byte* to = moved(buffer_, which_.begin());
  if (which_.size() != which_.extent()) {
    assembled_ = std::make_unique_for_overwrite<std::byte[]>(head.bytes);
    to = assembled_.get();
  }
  progress::of_process().owe(1);
  const int tag = answers.new_tag();
  const auto self = std::static_pointer_cast<incoming>(shared_from_this());
  receive_in_chunks(to, {head.bytes, head.chunk, head.sender, tag},
                    [self](const std::optional<error>& failure) { self->fetched(failure); });
  answers.send({head.sequence, answer::verdict::chunks, tag}, head.sender);
}

void incoming::fetched(const std::optional<error>& failure) {
  std::optional<error> what = failure;
  try {
    if (assembled_ && !failure) scatter();
  } catch (const error& e) {
    what = e;
  }
  assembled_.reset();
  head_.reset();
  progress::of_process().owe(-1);
  conclude(status_, what);
}

void incoming::scatter() {
  std::optional<staged_buffer> device;
  if (concerns(buffer_)) device.emplace(buffer_, which_, host_use::write, false);
  void* const to = device ? device->pointer() : buffer_;
  const std::byte* from = assembled_.get();
  which_.visit(head_->bytes, [&](stretch s) {
    std::memcpy(moved(to, s.offset), from, s.bytes);
    from += s.bytes;
  });
  if (device) device->written(head_->bytes);
}

}  // namespace hpe::interpose::mpi
