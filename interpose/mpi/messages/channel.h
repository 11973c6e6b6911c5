#pragma once

/// Sends receivers' answers to envelopes on hpe's own communicator, and allocates the tags of the transfers that
/// follow.

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

struct answer {
  enum class verdict : std::uint32_t {
    chunks,       ///< the sender must send the payload in chunks, with `tag`
    unreachable,  ///< like `chunks`; in addition, this receiver cannot use offers of device memory
    done          ///< the receiver has the payload, or rejects it because it is too long
  };
  std::uint64_t sequence = 0;  ///< the sequence number of the envelope
  verdict what = verdict::done;
  std::int32_t tag = 0;
};

/// Each process has one channel. The functions must be called while a progress::guard exists.
class channel {
 public:
  static channel& of_process();

  /// Called by job::begin (open) and job::end (close).
  void open();
  void close();

  /// Returns the sequence number for a new envelope. `then` will be called with the answer to the envelope.
  [[nodiscard]] std::uint64_t expect_answer(std::function<void(const answer&)> then);
  /// Replaces the function that is called with the answer.
  void pass_on(std::uint64_t sequence, std::function<void(const answer&)> then) {
    waiting_[sequence] = std::move(then);
  }
  /// Removes the function, because the envelope was not sent or no answer will come.
  void forget(std::uint64_t sequence) { waiting_.erase(sequence); }

  /// Sends an answer to a rank in MPI_COMM_WORLD.
  void send(const answer& what, int rank);

  /// Returns a tag that no other transfer to this process uses.
  [[nodiscard]] int new_tag();

 private:
  void listen();

  std::unordered_map<std::uint64_t, std::function<void(const answer&)>> waiting_;
  std::uint64_t next_sequence_ = 1;
  int next_tag_ = 0;
  answer incoming_;
  MPI_Request listening_{};
};

}  // namespace hpe::interpose::mpi
