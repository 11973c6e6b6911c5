#pragma once

/// Messages that hpe took out of MPI because a probe met a message as long as an envelope: only its bytes tell whether
/// it is an envelope, and how long the announced message is. hpe also takes all earlier messages of the same sender, so
/// the messages here precede those that MPI still has, and receives look here first.
///
/// If several threads are in MPI, no receive may be posted after its message was taken out. So looking here and posting
/// a receive are one step under progress::guard, and probing and taking are another.

#include <atomic>
#include <list>
#include <optional>
#include <unordered_map>

#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/progress.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// A matched message.
struct matched {
  MPI_Comm comm{};
  MPI_Status status{};  ///< as a probe returns it, with the size of the message that the envelope announces
  MPI_Message handle{};
  bool looked_into = false;      ///< `handle` is a copy's: MPI returns a wrong source and tag for it
  std::optional<envelope> head;  ///< set if the message is an envelope

  /// Receives and drops an envelope.
  void consume();
  /// Corrects the source and tag in the status that MPI returned for a receive of this message.
  void correct(MPI_Status& said) const;
};

/// One per process. Thread safe.
class set_aside {
 public:
  static set_aside& of_process();

  /// Takes a message that may be an envelope, which a probe met, and the sender's earlier ones out of MPI.
  void take_from_mpi(const MPI_Status& met, MPI_Comm comm);

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  /// Runs post(), which posts a receive to MPI without waiting for it. Returns false, without running it, if there are
  /// messages here.
  template <class Post>
  [[nodiscard]] bool if_empty(Post&& post) {
    const progress::guard held;
    if (!empty()) return false;
    post();
    return true;
  }

  /// The first message that matches; take() also removes it.
  [[nodiscard]] std::optional<MPI_Status> find(MPI_Comm comm, int source, int tag);
  [[nodiscard]] std::optional<matched> take(MPI_Comm comm, int source, int tag);

  /// Receives a matched message to see whether it is an envelope. The result's handle replaces the message's handle.
  [[nodiscard]] matched look_into(MPI_Message handle, const MPI_Status& status, MPI_Comm comm);
  /// Records that the program gets the handle.
  void handed_out(const matched& what);
  /// Returns, and forgets, the message of a handle that handed_out() recorded; only look_into() makes those.
  [[nodiscard]] std::optional<matched> taken_back(MPI_Message handle);

 private:
  using messages = std::list<matched>;
  messages::iterator first(MPI_Comm comm, int source, int tag) HPE_REQUIRES(mutex_);

  mutex mutex_;
  messages messages_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<MPI_Message, matched> handed_out_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // of messages_ and handed_out_ together
};

}  // namespace hpe::interpose::mpi
