#include "interpose/mpi/messages/channel.h"

#include <memory>

#include "interpose/mpi/messages/message_progress.h"

namespace hpe::interpose::mpi {

namespace {

constexpr int tag_of_answers = 0;
// MPI allows tags up to 32767 in every implementation. A process never receives that many transfers at the same time,
// so tags can be reused in rotation.
constexpr int tags = 32767;

}  // namespace

channel& channel::of_process() {
  static auto* const it = new channel;
  return *it;
}

void channel::open() {
  const progress::guard held;
  listen();
}

void channel::close() {
  const progress::guard held;
  progress::of_process().detach();
  HPE_REAL(Cancel)(&listening_);
}

std::uint64_t channel::expect_answer(std::function<void(const envelope_answer&)> then) {
  waiting_.emplace(next_sequence_, std::move(then));
  return next_sequence_++;
}

void channel::send(const envelope_answer& what, int rank) {
  // An answer is so short that every transport sends it eagerly, but MPI may read its memory until the request has
  // completed. `then` keeps the memory until that time.
  auto kept = std::make_shared<envelope_answer>(what);
  progress& all = progress::of_process();
  progress::continuation then = [kept, &all](const MPI_Status&, int) {
    all.over();
    all.owe(-1);
  };
  all.make_room();
  MPI_Request request{};
  HPE_REAL(Isend)
  (kept.get(), sizeof *kept, handles::get().byte, rank, tag_of_answers, job::current()->channel, &request);
  all.begun();
  all.owe(1);
  all.when_over(request, std::move(then));
}

int channel::new_tag() {
  next_tag_ = next_tag_ % tags + 1;
  return next_tag_;
}

void channel::listen() {
  progress::continuation then = [this](const MPI_Status&, int code) {
    if (code != MPI_SUCCESS) return;
    const envelope_answer got = incoming_;
    listen();
    if (auto found = waiting_.extract(got.sequence)) found.mapped()(got);
  };
  progress::of_process().make_room();
  HPE_REAL(Irecv)
  (&incoming_, sizeof incoming_, handles::get().byte, MPI_ANY_SOURCE, tag_of_answers, job::current()->channel,
   &listening_);
  progress::of_process().when_over(listening_, std::move(then));
}

}  // namespace hpe::interpose::mpi
