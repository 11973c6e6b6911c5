#pragma once

/// The messages that this rank sends and receives in a collective call, or in one step of the call. A blocking call
/// waits for all messages in finish(); a non-blocking call calls over() until it returns true.

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/mpi/collectives/near_group.h"

namespace hpe::interpose::mpi {

class exchange {
 public:
  using ranks = near_group::ranks_of_call;

  explicit exchange(ranks who) : who_(std::move(who)) {}
  /// After an exception, some messages may not have completed. The destructor waits for them, because MPI uses their
  /// buffers. It does not cancel receives, because a later call would then receive their messages.
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  [[nodiscard]] int rank() const noexcept { return who_.rank; }
  [[nodiscard]] int size() const noexcept { return who_.size; }

  /// Begin to receive or send a message of `count` elements; do nothing if the elements contain no data. Add receives
  /// before sends. If the buffer cannot be used, receive() receives into other memory and send() sends an empty
  /// message, so that the other rank does not wait forever; result() then returns the error.
  void receive(void* to, int count, MPI_Datatype type, int from);
  void send(const void* from, int count, MPI_Datatype type, int to);

  /// Waits for all messages. If a message has failed, calls the error handler of `comm` with the first error and
  /// returns this error.
  [[nodiscard]] int finish(MPI_Comm comm);

  /// Whether all messages have completed. Does not wait.
  [[nodiscard]] bool over();
  /// Returns the first error of the completed messages; MPI_SUCCESS if none has failed. over() calls no error handler
  /// for this error.
  [[nodiscard]] int result() const noexcept { return result_; }
  /// Call this when a thread of the program begins to wait in MPI until all messages have completed.
  void await();

 private:
  void note(int result) noexcept {
    if (result_ == MPI_SUCCESS) result_ = result;
  }

  const ranks who_;
  std::vector<MPI_Request> requests_;
  std::size_t first_left_ = 0;                        // the index of the first request that may not have completed
  std::vector<std::unique_ptr<std::byte[]>> unused_;  // memory for messages whose buffers cannot be used
  int result_ = MPI_SUCCESS;
};

}  // namespace hpe::interpose::mpi
