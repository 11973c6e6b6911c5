#pragma once

/// Sends receivers' answers to envelopes (envelope.h) on hpe's own communicator, and allocates the tags for the
/// messages that then transfer the payloads.

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

struct envelope_answer {
  enum class verdict : std::uint32_t {
    chunks,       ///< the sender must send the payload in chunks, in messages with the tag `tag`
    unreachable,  ///< like `chunks`; in addition, this receiver cannot access the device memory that the sender offers
    done          ///< the receiver has copied the payload, or rejects it because it is too long for the receive buffer
  };
  std::uint64_t sequence = 0;  ///< the sequence number of the envelope
  verdict what = verdict::done;
  std::int32_t tag = 0;
};

/// Each process has one channel. Callers of its functions must hold a progress::guard.
class channel {
 public:
  static channel& of_process();

  /// job::begin calls open(), and job::end calls close().
  void open();
  void close();

  /// Returns the sequence number for a new envelope. The channel calls `then` with the answer to this envelope.
  [[nodiscard]] std::uint64_t expect_answer(std::function<void(const envelope_answer&)> then);
  /// Replaces the function that the channel calls with the answer to an envelope.
  void pass_on(std::uint64_t sequence, std::function<void(const envelope_answer&)> then) {
    waiting_[sequence] = std::move(then);
  }
  /// Removes the function for an envelope that was not sent, or to which the receiver will send no answer.
  void forget(std::uint64_t sequence) { waiting_.erase(sequence); }

  /// Sends an answer to a rank in MPI_COMM_WORLD.
  void send(const envelope_answer& what, int rank);

  /// Returns a tag that no other transfer to this process uses.
  [[nodiscard]] int new_tag();

 private:
  void listen();

  std::unordered_map<std::uint64_t, std::function<void(const envelope_answer&)>> waiting_;
  std::uint64_t next_sequence_ = 1;
  int next_tag_ = 0;
  envelope_answer incoming_;
  MPI_Request listening_{};
};

}  // namespace hpe::interpose::mpi
