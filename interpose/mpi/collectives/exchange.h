#pragma once

/// The messages of one collective call, or of one step of it. Every rank adds its messages; a blocking call then waits
/// for all of them in finish(), a non-blocking one looks at over().

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/mpi/collectives/near_group.h"

namespace hpe::interpose::mpi {

class exchange {
 public:
  using ranks = near_group::ranks_of_call;

  explicit exchange(ranks who) : who_(std::move(who)) {}

  [[nodiscard]] int rank() const noexcept { return who_.rank; }
  [[nodiscard]] int size() const noexcept { return who_.size; }

  /// Begin a message of `count` elements; none if they have no data. Receives should come before sends. If a buffer
  /// cannot be used, the other rank still gets its message, or can send it, and result() is the error.
  void receive(void* to, int count, MPI_Datatype type, int from);
  void send(const void* from, int count, MPI_Datatype type, int to);

  /// Waits for all messages and returns the first error, after the error handler of `comm` has got it.
  [[nodiscard]] int finish(MPI_Comm comm);

  /// Whether all messages are over. Does not wait.
  [[nodiscard]] bool over();
  /// The first error of the messages that are over; no error handler has got it.
  [[nodiscard]] int result() const noexcept { return result_; }
  /// The program waits in MPI until all messages are over.
  void await();

 private:
  void note(int result) noexcept {
    if (result_ == MPI_SUCCESS) result_ = result;
  }

  const ranks who_;
  std::vector<MPI_Request> requests_;
  std::size_t first_left_ = 0;                        // all requests before it are over
  std::vector<std::unique_ptr<std::byte[]>> unused_;  // received in place of buffers that cannot be used
  int result_ = MPI_SUCCESS;
};

}  // namespace hpe::interpose::mpi
