#pragma once

/// What goes on in the background of the program's calls of MPI. Open MPI calls a function of ours wherever one of its
/// own waits or tests (opal_progress), so large messages advance in every such call, also in one that waits for
/// something else: a collective, a file, another message. That is MPI's own rule of progress.

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// One per process. Continuations and polls run under its lock, one at a time, in any thread that is in MPI; they start
/// operations of MPI and of devices and wait for none. They throw nothing.
class progress {
 public:
  /// Gets the status of a finished request, and MPI_SUCCESS or the error that its handler was called with.
  using continuation = std::function<void(const MPI_Status& status, int code)>;
  /// Says whether it is done.
  using poll = std::function<bool()>;

  static progress& of_process();

  /// Whether Open MPI took the function. Once.
  [[nodiscard]] bool attach();
  /// Nothing is looked at any more.
  void detach() { attached_ = false; }

  /// Keeps continuations and polls of all threads from running.
  class guard {
   public:
    guard();
    ~guard();
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
  };

  /// The request must not be the program's. Under a guard, or from a continuation or poll, like the next three.
  void when_over(MPI_Request request, continuation then);
  /// Until it is done.
  void repeat(poll each);
  /// While nothing goes on nothing is looked at, and MPI's calls take no longer than without hpe.
  void begun() { ++going_on_; }
  void over() { --going_on_; }
  /// Of these, what others wait for and must be done before MPI ends.
  void owe(int more) { owed_ += more; }
  [[nodiscard]] bool owes_nothing() const noexcept { return owed_.load(std::memory_order_acquire) == 0; }

  /// Whether the calling thread waits for the one thing that goes on, so that nobody minds if it waits for that alone.
  [[nodiscard]] bool only_one() const noexcept { return going_on_.load(std::memory_order_relaxed) == 1; }

  [[nodiscard]] bool idle() const noexcept { return going_on_.load(std::memory_order_relaxed) == 0; }

  /// Waits in MPI. Without a guard.
  template <class Condition>
  void until(Condition&& holds) {
    while (!holds()) wait_a_little_();
  }

 private:
  progress() = default;
  static int called_by_mpi();
  int advance();
  int look_at_requests();

  void (*wait_a_little_)() = nullptr;
  std::recursive_mutex mutex_;
  int held_ = 0;  // guards, and advance()
  std::atomic<bool> attached_{false};
  std::atomic<int> going_on_{0};
  std::atomic<int> owed_{0};
  std::vector<MPI_Request> requests_;
  std::vector<continuation> thens_;  // of each request
  std::vector<poll> polls_;
  std::vector<poll> running_;  // of advance(), kept for their memory
  std::vector<int> indices_;   // likewise
  std::vector<MPI_Status> statuses_;
};

}  // namespace hpe::interpose::mpi
