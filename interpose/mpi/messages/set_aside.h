#pragma once

/// Messages that hpe has taken out of MPI, which means that hpe has matched them with MPI_Improbe. hpe takes a message
/// out if a probe of the program has found it and it is as long as an envelope. hpe must read the message's bytes to
/// find out whether the message is an envelope, and the length of the large message that the envelope describes. hpe
/// also takes out all earlier messages of the same sender. So messages that were taken out are older than messages in
/// MPI, and a receive must first search the messages that were taken out.
///
/// If several threads are in MPI, no thread may post a receive whose message another thread has just taken out.
/// Therefore a thread holds the same progress::guard while it searches these messages and then posts a receive. A
/// thread also holds the same progress::guard while it probes messages and then takes them out.

#include <atomic>
#include <list>
#include <optional>
#include <unordered_map>

#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/message_progress.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// A message that hpe has matched with MPI_Improbe.
struct matched {
  MPI_Comm comm{};
  MPI_Status status{};  ///< the status for a probe of the program; for an envelope, with the size of the large message
  MPI_Message handle{};
  /// `handle` belongs to a copy of the message, for which MPI returns a wrong source and tag.
  bool looked_into = false;
  std::optional<envelope> head;  ///< set if the message is an envelope

  /// Receives the envelope and discards it.
  void consume();
  /// Corrects the source and tag in a status that MPI has returned for a receive of this message.
  void correct(MPI_Status& said) const;
};

/// The messages that this process has taken out of MPI. Each process has one object. Thread safe.
class set_aside {
 public:
  static set_aside& of_process();

  /// Takes a message out of MPI, together with the sender's earlier messages. `met`: the status of the probe that has
  /// found the message.
  void take_from_mpi(const MPI_Status& met, MPI_Comm comm);

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  /// Runs post() and returns true if this object contains no messages; otherwise returns false. post() must post a
  /// receive to MPI and must not wait for it.
  template <class Post>
  [[nodiscard]] bool if_empty(Post&& post) {
    const progress::guard held;
    if (!empty()) return false;
    post();
    return true;
  }

  /// Search for the oldest message that matches the arguments: find() returns its status; take() removes the message
  /// and returns it. Both return nullopt if no message matches.
  [[nodiscard]] std::optional<MPI_Status> find(MPI_Comm comm, int source, int tag);
  [[nodiscard]] std::optional<matched> take(MPI_Comm comm, int source, int tag);

  /// Receives a matched message and checks whether it is an envelope. The result contains a new handle, which replaces
  /// `handle`.
  [[nodiscard]] matched look_into(MPI_Message handle, const MPI_Status& status, MPI_Comm comm);
  /// Records that the program gets the handle of the message `what`. Does nothing if the handle is not from
  /// look_into().
  void handed_out(const matched& what);
  /// Removes and returns the message that handed_out() has recorded for a handle; nullopt if there is none.
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
