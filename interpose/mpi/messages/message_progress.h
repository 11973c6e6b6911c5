#pragma once

/// Continues transfers of large messages during the program's calls of MPI. Whenever functions of Open MPI wait or
/// test, Open MPI calls a function of hpe (through opal_progress). So a transfer continues in every call that waits or
/// tests, even if the call concerns a collective operation, a file or another message. The MPI standard has the same
/// rule for MPI's own progress.
///
/// Other MPI libraries do not call hpe. With these libraries, the wrappers that wait for requests and messages continue
/// the transfers themselves (waits.h). While the program is in other calls, such as collective operations, a thread of
/// hpe continues the transfers at short intervals; the library must support MPI_THREAD_MULTIPLE for this.

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Each process has one object. Threads that are in calls of MPI call continuations and polls, one at a time, under the
/// object's lock. Continuations and polls may start operations of MPI and of devices, but should not wait for these
/// operations, and must not throw.
class progress {
 public:
  /// A function that is called with the status of a completed request. `code`: MPI_SUCCESS, or an error for which MPI
  /// has already called the error handler.
  using continuation = std::function<void(const MPI_Status& status, int code)>;
  /// A function that is called until it returns true.
  using poll = std::function<bool()>;

  static progress& of_process();

  /// Registers hpe's function in the MPI library, or starts hpe's thread if the library does not call hpe. Returns
  /// false if neither is possible. Call this only once.
  [[nodiscard]] bool attach();
  /// After this call, no thread calls continuations or polls.
  void detach();

  /// Whether transfers are in progress that the MPI library does not continue while it waits.
  [[nodiscard]] bool continues_itself() const noexcept { return unaided_ && !idle(); }
  /// Continues the transfers once if the MPI library does not. The wrappers of MPI_Test, MPI_Iprobe and similar
  /// functions call this, and so do waits when they end.
  void help() {
    if (continues_itself()) called_by_mpi();
  }

  /// Continues the transfers of all messages that MPI has received. The caller must not hold a guard.
  void catch_up();

  /// While a guard exists, other threads cannot hold a guard, and no thread calls continuations or polls. The exception
  /// is the thread that continues the transfers, which holds a guard during its turn. A thread that holds a guard must
  /// not wait for a transfer, because the transfer does not continue while the guard exists.
  class guard {
   public:
    guard();
    ~guard();
    /// Whether the calling thread holds a guard.
    [[nodiscard]] static bool is_held() noexcept;
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
  };

  /// Reserves memory for one call of when_over(). when_over() then cannot fail, which matters because an operation that
  /// MPI has begun cannot be undone. Throws std::bad_alloc. Callers of make_room(), when_over() and repeat() must hold
  /// a guard, or be a continuation or poll.
  void make_room();
  /// Makes hpe call `then` when `request` has completed. `request` must be hpe's own, not a request of the program.
  /// Call this after make_room(), while the same guard exists.
  void when_over(MPI_Request request, continuation&& then) noexcept;
  /// Makes hpe call `each` repeatedly, until `each` returns true.
  void repeat(poll each);
  /// Count the operations that are in progress: begun() when one begins, over() when one ends. While no operation is in
  /// progress, hpe's function only loads one variable in each call of MPI.
  void begun() {
    if (going_on_++ == 0 && unaided_) going_on_.notify_one();
  }
  void over() { --going_on_; }
  /// While an object of this class exists, it counts as an operation in progress.
  class busy {
   public:
    busy() { of_process().begun(); }
    ~busy() { of_process().over(); }
    busy(const busy&) = delete;
    busy& operator=(const busy&) = delete;
  };
  /// Call this at the end of a nonblocking call of the program that has begun a receive. If other operations are in
  /// progress, some of these calls make progress, so that messages that have arrived do not wait until the program has
  /// begun all its receives. The caller must not hold a guard.
  void look_at_arrivals();
  /// Call this at the end of a nonblocking call of the program that has begun an operation. If other operations are in
  /// progress, calls each poll once.
  void look();
  /// Adds `more`, which may be negative, to the number of operations for which other ranks wait. These operations must
  /// complete before MPI_Finalize.
  void owe(int more) { owed_ += more; }
  [[nodiscard]] bool owes_nothing() const noexcept { return owed_.load(std::memory_order_acquire) == 0; }

  /// Whether exactly one operation is in progress. A poll of this operation may then spin, because it delays no other
  /// operation.
  [[nodiscard]] bool only_one() const noexcept { return going_on_.load(std::memory_order_relaxed) == 1; }

  [[nodiscard]] bool idle() const noexcept { return going_on_.load(std::memory_order_relaxed) == 0; }

  /// Calls MPI's progress function until holds() is true. If the ranks do not use the protocol, holds() itself must
  /// make progress. The caller must not hold a guard.
  template <class Condition>
  void until(Condition&& holds) {
    const waiting here(*this);
    while (!holds()) wait_a_little_();
  }

 private:
  /// Exists while a thread of the program is in until().
  class waiting {
   public:
    explicit waiting(progress& of) : of_(of) { ++of_.waiting_; }
    ~waiting() { --of_.waiting_; }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

   private:
    progress& of_;
  };

  progress() = default;
  static int called_by_mpi();
  enum class other_threads : bool { left_alone, awaited };
  /// Continues all transfers once. While another thread does so or holds a guard, waits for this thread or does
  /// nothing. Returns the number of transfers and polls that have ended.
  int take_turn(other_threads others);
  static void step();
  void assist();
  int advance();
  int look_at_requests();
  int call_polls();

  void (*wait_a_little_)() = [] { std::this_thread::yield(); };
  bool unaided_ = false;  // whether the MPI library does not call hpe; set before the first transfer
  std::thread assistant_;
  std::recursive_mutex mutex_;
  std::atomic<bool> attached_{false};
  std::atomic<int> going_on_{0};
  std::atomic<int> owed_{0};
  std::atomic<int> waiting_{0};
  std::atomic<unsigned> steps_{0};  // counts the calls of step()
  std::atomic<unsigned> begun_beside_others_{0};
  std::vector<MPI_Request> requests_;
  std::vector<continuation> thens_;  // the continuation of each request
  std::vector<poll> polls_;
  std::vector<poll> running_;  // used only by call_polls(); a member so that its memory is reused
  std::vector<int> indices_;   // used only by look_at_requests(); a member so that its memory is reused
  std::vector<MPI_Status> statuses_;
};

}  // namespace hpe::interpose::mpi
