#pragma once

/// Background work during the program's calls of MPI. Open MPI calls a function of hpe wherever its own functions wait
/// or test (opal_progress), so large messages advance in every call that waits or tests, also for a collective, a file
/// or another message. That is MPI's own rule of progress.

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// One per process. Continuations and polls run under its lock, one at a time, in any thread that is in MPI. They may
/// start operations of MPI and of devices but should not wait for them, and they must not throw.
class progress {
 public:
  /// Gets the status of a finished request, and MPI_SUCCESS or the error that MPI's error handler has already got.
  using continuation = std::function<void(const MPI_Status& status, int code)>;
  /// Returns true when it need not be called again.
  using poll = std::function<bool()>;

  static progress& of_process();

  /// Registers the function of hpe; returns whether Open MPI accepted it. Call it once.
  [[nodiscard]] bool attach();
  /// Stops all continuations and polls.
  void detach() { attached_ = false; }

  /// Keeps continuations and polls of all threads from running.
  class guard {
   public:
    guard();
    ~guard();
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
  };

  /// Calls `then` when a request, which must not be the program's, is over. Call this and the functions up to owe()
  /// under a guard, or from a continuation or poll.
  void when_over(MPI_Request request, continuation then);
  /// Calls `each` until it returns true.
  void repeat(poll each);
  /// Count the operations in progress. While there are none, MPI's calls take no longer than without hpe.
  void begun() { ++going_on_; }
  void over() { --going_on_; }
  /// Counts an operation in progress for the lifetime of the object.
  class busy {
   public:
    busy() { of_process().begun(); }
    ~busy() { of_process().over(); }
    busy(const busy&) = delete;
    busy& operator=(const busy&) = delete;
  };
  /// For a call that begins a receive beside others and does not wait: makes progress in some of such calls, so that
  /// messages which have arrived do not wait until the program has begun all its receives.
  void look_at_arrivals();
  /// Calls the polls once, for a call that begins an operation beside others and does not wait.
  void look();
  /// Counts the operations that other ranks wait for and that must be over before MPI_Finalize.
  void owe(int more) { owed_ += more; }
  [[nodiscard]] bool owes_nothing() const noexcept { return owed_.load(std::memory_order_acquire) == 0; }

  /// Whether one operation is in progress. A poll that waits for it then delays no other operation.
  [[nodiscard]] bool only_one() const noexcept { return going_on_.load(std::memory_order_relaxed) == 1; }

  [[nodiscard]] bool idle() const noexcept { return going_on_.load(std::memory_order_relaxed) == 0; }

  /// Calls MPI's progress function until the condition holds. The caller must not hold a guard.
  template <class Condition>
  void until(Condition&& holds) {
    while (!holds()) wait_a_little_();
  }

 private:
  progress() = default;
  static int called_by_mpi();
  int advance();
  int look_at_requests();
  int call_polls();

  void (*wait_a_little_)() = nullptr;
  std::recursive_mutex mutex_;
  int held_ = 0;  // guards, plus 1 while advance() runs
  std::atomic<bool> attached_{false};
  std::atomic<int> going_on_{0};
  std::atomic<int> owed_{0};
  std::atomic<unsigned> begun_beside_others_{0};
  std::vector<MPI_Request> requests_;
  std::vector<continuation> thens_;  // of each request
  std::vector<poll> polls_;
  std::vector<poll> running_;  // of call_polls(), kept for their memory
  std::vector<int> indices_;   // of look_at_requests(), kept for their memory
  std::vector<MPI_Status> statuses_;
};

}  // namespace hpe::interpose::mpi
