#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "interpose/mpi/pending.h"
#include "runtime/base/error.h"

// Chunk i uses place (host buffer) number i % at_once. MPI receives the chunk into this place, and the device then
// copies the chunk from the place to the destination. After this copy, the place is free for another chunk. Receives
// are posted in the order of the chunks. After a failure, hpe receives and discards the remaining chunks.

namespace hpe::interpose::mpi {

namespace {

class chunked_receive : public std::enable_shared_from_this<chunked_receive> {
 public:
  chunked_receive(std::byte* to, const chunk_plan& plan, transfer_over then)
      : to_(to), plan_(plan), then_(std::move(then)) {}

  /// Posts receives for which places are free. Returns true if all receives are posted. If host memory is short, a
  /// later call posts the remaining receives.
  bool step() {
    try {
      for (; posted_ < plan_.count() && is_free(place_of(posted_)); ++posted_) post(posted_);
    } catch (const std::bad_alloc&) {
    }
    return posted_ == plan_.count();
  }

 private:
  struct receive_place {
    buffer_access access;
    std::unique_ptr<std::byte[]> nowhere;  // the receive buffer in place of `access` after a failure
    bool receiving = false;
  };

  receive_place& place_of(std::size_t i) { return places_[i % chunk_plan::at_once]; }

  // Whether the place can be used for another chunk. A place whose copy has failed is also free.
  bool is_free(const receive_place& p) {
    bool settled = true;
    if (!p.receiving) failure_.attempt([&] { settled = p.access.settled(); });
    return !p.receiving && settled;
  }

  void post(std::size_t i) {
    receive_place& mine = place_of(i);
    mine.access = {};
    if (!failure_.any())
      failure_.attempt([&] { mine.access = {to_ + plan_.offset(i), plan_.size(i), host_use::write}; });
    void* into = mine.access.data();
    if (failure_.any()) {
      mine.nowhere = std::make_unique<std::byte[]>(plan_.size(i));
      into = mine.nowhere.get();
    }
    progress::continuation then = [self = shared_from_this(), i](const MPI_Status& status, int code) {
      self->arrived(i, status, code);
    };
    progress::of_process().make_room();
    mine.receiving = true;
    MPI_Request request{};
    HPE_REAL(Irecv)
    (into, static_cast<int>(plan_.size(i)), handles::get().byte, plan_.rank, plan_.tag, job::current()->channel,
     &request);
    progress::of_process().when_over(request, std::move(then));
  }

  void arrived(std::size_t i, const MPI_Status& status, int code) {
    receive_place& mine = place_of(i);
    mine.receiving = false;
    failure_.attempt([&] {
      HPE_REQUIRE(code == MPI_SUCCESS && bytes_received(status) == plan_.size(i), HPE_ERROR_SYSTEM,
                  "rank {} could not send all of a message of {} bytes: it lost a device or the connection", plan_.rank,
                  plan_.bytes);
      if (!failure_.any()) mine.access.start_written();
    });
    if (++arrived_ == plan_.count() && !end())
      progress::of_process().repeat([self = shared_from_this()] { return self->end(); });
  }

  // Ends the transfer. In memory of the driver (adopted memory), the transfer has ended when all copies have ended. In
  // hpe memory, the runtime orders later accesses after the copies.
  bool end() {
    for (const receive_place& p : places_) {
      bool in_place = true;
      failure_.attempt([&] { in_place = !p.access.adopted() || p.access.settled(); });
      if (!in_place) return false;
    }
    then_(failure_.what());
    return true;
  }

  std::byte* const to_;
  const chunk_plan plan_;
  const transfer_over then_;
  std::array<receive_place, chunk_plan::at_once> places_;
  std::size_t posted_ = 0;
  std::size_t arrived_ = 0;
  first_failure failure_;
};

}  // namespace

void receive_in_chunks(std::byte* to, const chunk_plan& plan, transfer_over then) {
  auto it = std::make_shared<chunked_receive>(to, plan, std::move(then));
  if (!it->step()) progress::of_process().repeat([it] { return it->step(); });
}

}  // namespace hpe::interpose::mpi
