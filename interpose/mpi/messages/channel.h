#pragma once

/// What receivers answer to envelopes, on a communicator of hpe's own, and the tags of what follows.

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

struct answer {
  enum class verdict : std::uint32_t {
    chunks,       ///< send the payload in chunks, with `tag`
    unreachable,  ///< the same; and no offer of device memory can be taken
    done          ///< the payload is there, or nobody wants it
  };
  std::uint64_t sequence = 0;  ///< of the envelope
  verdict what = verdict::done;
  std::int32_t tag = 0;
};

/// One per process. Under progress::guard.
class channel {
 public:
  static channel& of_process();

  /// job::begin and job::end call these.
  void open();
  void close();

  /// The number for a new envelope; `then` gets the answer to it.
  [[nodiscard]] std::uint64_t expect_answer(std::function<void(const answer&)> then);
  /// Somebody else gets the answer.
  void pass_on(std::uint64_t sequence, std::function<void(const answer&)> then) {
    waiting_[sequence] = std::move(then);
  }
  /// The envelope was not sent, or no answer comes.
  void forget(std::uint64_t sequence) { waiting_.erase(sequence); }

  /// To a rank of MPI_COMM_WORLD.
  void send(const answer& what, int rank);

  /// A tag that no other transfer to this process uses.
  [[nodiscard]] int new_tag();

 private:
  void listen();

  std::unordered_map<std::uint64_t, std::function<void(const answer&)>> waiting_;
  std::uint64_t next_sequence_ = 1;
  int next_tag_ = 0;
  answer incoming_;
  MPI_Request listening_ = nullptr;
};

}  // namespace hpe::interpose::mpi
