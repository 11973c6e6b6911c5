#pragma once

/// Makes background progress during the program's calls of MPI. Open MPI calls a function of hpe (through
/// opal_progress) whenever its own functions wait or test. So large messages make progress in every call that waits or
/// tests, even if the call concerns a collective operation, a file or another message. The MPI standard defines the
/// same rule for MPI's own progress.

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Each process has one object. Continuations and polls are called under the object's lock, one at a time, in any
/// thread that is in MPI. They may start operations of MPI and of devices, but should not wait for these operations,
/// and must not throw.
class progress {
 public:
  /// Called with the status of a completed request. `code` is MPI_SUCCESS or an error that has already been passed to
  /// MPI's error handler.
  using continuation = std::function<void(const MPI_Status& status, int code)>;
  /// A function that is called until it returns true.
  using poll = std::function<bool()>;

  static progress& of_process();

  /// Registers hpe's function and returns whether Open MPI has accepted it. To be called only once.
  [[nodiscard]] bool attach();
  /// From now on, no continuation or poll is called.
  void detach() { attached_ = false; }

  /// While the object exists, no thread calls continuations or polls.
  class guard {
   public:
    guard();
    ~guard();
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
  };

  /// Reserves memory for one call of when_over(), so that this call cannot fail: an operation that MPI has begun cannot
  /// be undone. Throws std::bad_alloc. This function and the following ones up to owe() must be called while a guard
  /// exists, or from a continuation or poll.
  void make_room();
  /// Calls `then` when a request has completed, which must not be a request of the program. To be called after
  /// make_room(), with the same guard.
  void when_over(MPI_Request request, continuation&& then) noexcept;
  /// Calls `each` until it returns true.
  void repeat(poll each);
  /// Count the operations that are in progress. While no operation is in progress, MPI's calls take no longer than
  /// without hpe.
  void begun() { ++going_on_; }
  void over() { --going_on_; }
  /// While the object exists, it counts as an operation in progress.
  class busy {
   public:
    busy() { of_process().begun(); }
    ~busy() { of_process().over(); }
    busy(const busy&) = delete;
    busy& operator=(const busy&) = delete;
  };
  /// To be called when a call of the program has begun a receive and returns without a wait, while other operations are
  /// in progress. Some of these calls make progress, so that messages that have arrived do not wait until the program
  /// has begun all its receives.
  void look_at_arrivals();
  /// Calls the polls once. To be called when a call of the program has begun an operation and returns without a wait,
  /// while other operations are in progress.
  void look();
  /// Counts the operations for which other ranks wait and which must therefore complete before MPI_Finalize.
  void owe(int more) { owed_ += more; }
  [[nodiscard]] bool owes_nothing() const noexcept { return owed_.load(std::memory_order_acquire) == 0; }

  /// Whether exactly one operation is in progress. If so, a poll that waits for it delays no other operation.
  [[nodiscard]] bool only_one() const noexcept { return going_on_.load(std::memory_order_relaxed) == 1; }

  [[nodiscard]] bool idle() const noexcept { return going_on_.load(std::memory_order_relaxed) == 0; }

  /// Calls MPI's progress function until the condition is true. The caller must not hold a guard.
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
  int held_ = 0;  // the number of guards, plus 1 while advance() runs
  std::atomic<bool> attached_{false};
  std::atomic<int> going_on_{0};
  std::atomic<int> owed_{0};
  std::atomic<unsigned> begun_beside_others_{0};
  std::vector<MPI_Request> requests_;
  std::vector<continuation> thens_;  // the continuation of each request
  std::vector<poll> polls_;
  std::vector<poll> running_;  // scratch of call_polls(), a member only so that its memory is reused
  std::vector<int> indices_;   // scratch of look_at_requests(), a member for the same reason
  std::vector<MPI_Status> statuses_;
};

}  // namespace hpe::interpose::mpi
