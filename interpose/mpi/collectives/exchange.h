#pragma once

/// The messages of one collective call. Every rank adds its messages, and then waits for all of them in finish().

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/mpi/collectives/near_group.h"

namespace hpe::interpose::mpi {

class exchange {
 public:
  explicit exchange(near_group& ranks) : ranks_(ranks), channel_(ranks.channel()) {}

  [[nodiscard]] int rank() const noexcept { return ranks_.rank(); }
  [[nodiscard]] int size() const noexcept { return ranks_.size(); }

  /// Begin a message of `count` elements; none if they have no data. Receives should come before sends. If a buffer
  /// cannot be used, the other rank still gets its message, or can send it, and finish() returns the error.
  void receive(void* to, int count, MPI_Datatype type, int from);
  void send(const void* from, int count, MPI_Datatype type, int to);

  /// Waits for all messages and returns the first error, after the error handler of `comm` has got it.
  [[nodiscard]] int finish(MPI_Comm comm);

 private:
  static constexpr int tag = 0;

  void note(int result) noexcept {
    if (result_ == MPI_SUCCESS) result_ = result;
  }

  near_group& ranks_;
  const MPI_Comm channel_;
  std::vector<MPI_Request> requests_;
  std::vector<std::unique_ptr<std::byte[]>> unused_;  // received in place of buffers that cannot be used
  int result_ = MPI_SUCCESS;
};

}  // namespace hpe::interpose::mpi
