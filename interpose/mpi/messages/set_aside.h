#pragma once

/// Messages that hpe has taken out of MPI because a probe found a message as long as an envelope. Only the message's
/// bytes show whether it is an envelope, and how long the announced message is. hpe also takes out all earlier messages
/// of the same sender. So the messages that were taken out precede those that are still in MPI, and receives must first
/// search the messages that were taken out.
///
/// If several threads are in MPI, a receive must not be posted after its message has been taken out. Therefore a thread
/// holds one progress::guard while it searches these messages and then posts a receive, and one progress::guard while
/// it probes messages and then takes them out.

#include <atomic>
#include <list>
#include <optional>
#include <unordered_map>

#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/progress.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// A message that MPI has matched.
struct matched {
  MPI_Comm comm{};
  MPI_Status status{};  ///< the status of a probe, with the size of the announced message
  MPI_Message handle{};
  bool looked_into = false;      ///< `handle` is that of a copy, for which MPI returns a wrong source and tag
  std::optional<envelope> head;  ///< set if the message is an envelope

  /// Receives the envelope and discards it.
  void consume();
  /// Corrects the source and tag in a status that MPI has returned for a receive of this message.
  void correct(MPI_Status& said) const;
};

/// Each process has one object. Thread safe.
class set_aside {
 public:
  static set_aside& of_process();

  /// Takes a message that a probe has found, and that may be an envelope, out of MPI, together with the sender's
  /// earlier messages.
  void take_from_mpi(const MPI_Status& met, MPI_Comm comm);

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  /// Runs post(), which posts a receive to MPI but does not wait for it. If there are messages here, does not run
  /// post() and returns false.
  template <class Post>
  [[nodiscard]] bool if_empty(Post&& post) {
    const progress::guard held;
    if (!empty()) return false;
    post();
    return true;
  }

  /// Return the first of these messages that matches: find() returns the status of the message; take() removes the
  /// message and returns it.
  [[nodiscard]] std::optional<MPI_Status> find(MPI_Comm comm, int source, int tag);
  [[nodiscard]] std::optional<matched> take(MPI_Comm comm, int source, int tag);

  /// Receives a matched message and determines whether it is an envelope. The handle in the result replaces the handle
  /// of the message.
  [[nodiscard]] matched look_into(MPI_Message handle, const MPI_Status& status, MPI_Comm comm);
  /// Records that the handle is returned to the program.
  void handed_out(const matched& what);
  /// Removes and returns the message of a handle that handed_out() has recorded. Only handles that look_into() has made
  /// must be recorded.
  [[nodiscard]] std::optional<matched> taken_back(MPI_Message handle);

 private:
  using messages = std::list<matched>;
  messages::iterator first(MPI_Comm comm, int source, int tag) HPE_REQUIRES(mutex_);

  mutex mutex_;
  messages messages_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<MPI_Message, matched> handed_out_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // the number of messages in messages_ and handed_out_ together
};

}  // namespace hpe::interpose::mpi
