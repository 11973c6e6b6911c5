#pragma once

/// Messages that were taken out of MPI because a probe met something as long as an envelope, and only its bytes tell
/// what it is and how long the message will be. All earlier messages of the same sender are taken along, so what is
/// here comes before what MPI still has, and receives look here first.
///
/// Where several threads are in MPI, a receive must not be given to MPI after its message was taken out. So both are
/// done under progress::guard: to look here and to post a receive, and to probe and to take.

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/progress.h"

namespace hpe::interpose::mpi {

/// A matched message.
struct matched {
  MPI_Comm comm = nullptr;
  MPI_Status status{};  ///< as a probe tells it, with the size of what the envelope stands for
  MPI_Message handle = nullptr;
  bool looked_into = false;      ///< the handle is that of a copy: what MPI says of its source is wrong
  std::optional<envelope> head;  ///< set if it is one

  /// Receives and drops an envelope.
  void consume();
  /// What MPI said of a receive from this.
  void correct(MPI_Status& said) const;
};

/// One per process. Any thread.
class set_aside {
 public:
  static set_aside& of_process();

  /// A probe met a message of envelope_bytes bytes: takes it.
  void take_from_mpi(const MPI_Status& met, MPI_Comm comm);

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

  /// Runs post(), which gives MPI a receive without waiting for it, unless there may be a message for it here.
  template <class Post>
  [[nodiscard]] bool if_empty(Post&& post) {
    const progress::guard held;
    if (!empty()) return false;
    post();
    return true;
  }

  /// The first one that matches.
  [[nodiscard]] std::optional<MPI_Status> find(MPI_Comm comm, int source, int tag);
  [[nodiscard]] std::optional<matched> take(MPI_Comm comm, int source, int tag);

  /// Looks into a message whose handle the program is about to get, and says by which one it is to be replaced.
  [[nodiscard]] matched look_into(MPI_Message handle, const MPI_Status& status, MPI_Comm comm);
  /// The program has the handle.
  void handed_out(const matched& what);
  /// What the program's handle is, if it was looked into.
  [[nodiscard]] std::optional<matched> taken_back(MPI_Message handle);

 private:
  using messages = std::list<matched>;
  messages::iterator first(MPI_Comm comm, int source, int tag);

  std::mutex mutex_;
  messages messages_;
  std::unordered_map<MPI_Message, matched> handed_out_;
  std::atomic<std::size_t> count_{0};  // in both
};

}  // namespace hpe::interpose::mpi
