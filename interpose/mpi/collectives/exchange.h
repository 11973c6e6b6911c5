#pragma once

/// The messages of a collective call, or of one step of such a call. Every rank adds its messages. A blocking call then
/// waits in finish() for all messages; a non-blocking call asks over() whether all messages have completed.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/mpi/collectives/near_group.h"

namespace hpe::interpose::mpi {

class exchange {
 public:
  using ranks = near_group::ranks_of_call;

  explicit exchange(ranks who) : who_(std::move(who)) {}
  /// Waits for messages that have not completed (after an exception), because MPI uses their buffers until then.
  /// Receives are not cancelled, because a later call would then receive the messages.
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  [[nodiscard]] int rank() const noexcept { return who_.rank; }
  [[nodiscard]] int size() const noexcept { return who_.size; }

  /// Begin a message of `count` elements, unless the elements contain no data. Receives should be added before sends.
  /// If a buffer cannot be used, the other rank can still send or receive the message, and result() returns the error.
  void receive(void* to, int count, MPI_Datatype type, int from);
  void send(const void* from, int count, MPI_Datatype type, int to);

  /// Waits for all messages. Passes the first error to the error handler of `comm` and returns it.
  [[nodiscard]] int finish(MPI_Comm comm);

  /// Whether all messages have completed. Does not wait.
  [[nodiscard]] bool over();
  /// The first error of the messages that have completed; no error handler has been called for this error.
  [[nodiscard]] int result() const noexcept { return result_; }
  /// To be called when the program waits in MPI until all messages have completed.
  void await();

 private:
  void note(int result) noexcept {
    if (result_ == MPI_SUCCESS) result_ = result;
  }

  const ranks who_;
  std::vector<MPI_Request> requests_;
  std::size_t first_left_ = 0;                        // all requests before this one have completed
  std::vector<std::unique_ptr<std::byte[]>> unused_;  // memory for messages whose buffers cannot be used
  int result_ = MPI_SUCCESS;
};

}  // namespace hpe::interpose::mpi
