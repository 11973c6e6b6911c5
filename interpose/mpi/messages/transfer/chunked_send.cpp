#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"

// Chunk i uses place (host buffer) number i % at_once. Copies to the places begin in the order of the chunks, and
// chunks are sent in this order. MPI keeps the order of messages with one tag, so chunks need no numbers. If a chunk
// cannot be read, an empty message is sent instead.

namespace hpe::interpose::mpi {

std::size_t chunk_plan::chunk_for(std::size_t bytes, std::size_t most) {
  constexpr std::size_t several = 8;
  constexpr std::size_t unit = std::size_t{64} << 10;
  const std::size_t wanted = (bytes / several + unit - 1) / unit * unit;
  return std::min(most, std::max(wanted, 8 * unit));
}

namespace {

class chunked_send : public std::enable_shared_from_this<chunked_send> {
 public:
  chunked_send(const std::byte* from, const chunk_plan& plan, transfer_over then)
      : from_(from), plan_(plan), then_(std::move(then)) {}

  /// Posts sends of chunks that are in host memory. Returns true if all sends are posted. If host memory is short, a
  /// later call posts the remaining sends.
  bool step() {
    start_copies();
    try {
      while (sent_ < started_ && is_ready(place_of(sent_))) {
        send(sent_);
        ++sent_;
        start_copies();
      }
    } catch (const std::bad_alloc&) {
    }
    return sent_ == plan_.count();
  }

 private:
  struct send_place {
    buffer_access access;
    bool taken = false;
  };

  send_place& place_of(std::size_t i) { return places_[i % chunk_plan::at_once]; }

  // Whether the chunk in the place can be sent. A place whose copy has failed is also ready; an empty message is then
  // sent.
  bool is_ready(const send_place& p) {
    bool ready = true;
    failure_.attempt([&] { ready = p.access.ready(); });
    return ready;
  }

  void start_copies() {
    for (; started_ < plan_.count() && !place_of(started_).taken; ++started_) {
      place_of(started_).taken = true;
      if (failure_.any()) continue;
      failure_.attempt([&] {
        place_of(started_).access = buffer_access::started(from_ + plan_.offset(started_), plan_.size(started_));
      });
    }
  }

  void send(std::size_t i) {
    send_place& mine = place_of(i);
    failure_.attempt([&] { mine.access.wait_ready(); });
    const int bytes = failure_.any() ? 0 : static_cast<int>(plan_.size(i));
    progress::continuation then = [self = shared_from_this(), &mine](const MPI_Status&, int) {
      mine.access = {};
      mine.taken = false;
      if (++self->over_ == self->plan_.count()) self->then_(self->failure_.what());
    };
    progress::of_process().make_room();
    MPI_Request request{};
    HPE_REAL(Isend)
    (mine.access.data(), bytes, handles::get().byte, plan_.rank, plan_.tag, job::current()->channel, &request);
    progress::of_process().when_over(request, std::move(then));
  }

  const std::byte* const from_;
  const chunk_plan plan_;
  const transfer_over then_;
  std::array<send_place, chunk_plan::at_once> places_;
  std::size_t started_ = 0;
  std::size_t sent_ = 0;
  std::size_t over_ = 0;
  first_failure failure_;
};

}  // namespace

void send_in_chunks(const std::byte* from, const chunk_plan& plan, transfer_over then) {
  auto it = std::make_shared<chunked_send>(from, plan, std::move(then));
  if (!it->step()) progress::of_process().repeat([it] { return it->step(); });
}

}  // namespace hpe::interpose::mpi
