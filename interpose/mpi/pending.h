#pragma once

/// A table of the operations whose buffers MPI uses, or will use when the program starts a persistent request again.
/// The key of an operation is its request; the keys of a one-sided operation are its window and its target. If the
/// program frees a communicator that operations use, the table frees it when these operations have ended.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interpose/mpi/mpi_errors.h"
#include "interpose/mpi/staged_buffer.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// An operation whose buffers MPI uses. The first call of finish() or drop() ends the operation. Further calls have no
/// effect until begin() starts it again.
class pending {
 public:
  /// `object`: the communicator, window or file whose error handler hpe calls for errors of the operation.
  pending(mpi_object object, bool persistent) : persistent(persistent), object_(object) {}
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  const bool persistent;

  /// Called before each start of a persistent operation. Returns MPI_SUCCESS. After an error of hpe, calls the error
  /// handler and returns the error code.
  virtual int begin() = 0;
  /// Whether begin() itself starts the operation, so that the wrapper must not call MPI_Start.
  [[nodiscard]] virtual bool starts_itself() const noexcept { return false; }
  /// Returns the request that the wrappers pass to MPI in place of the program's request; MPI_REQUEST_NULL if they must
  /// pass the program's request.
  [[nodiscard]] virtual MPI_Request stand_in() { return handles::get().request_null; }
  /// Called when MPI has freed the request of stand_in().
  virtual void stand_in_gone() {}
  /// Called before a thread waits in MPI for the end of the operation.
  virtual void await() {}
  /// If MPI has received the message, waits until hpe has copied it to the program's buffer. Called after the program
  /// has freed the request: the program knows that the message has arrived when a later message of the same sender has.
  virtual void await_arrived() {}
  /// Called when the program cancels the operation, before MPI's own function.
  virtual void cancel() {}
  /// Called when MPI has completed the operation. `status`: the operation's status, or nullptr if it has none. Returns
  /// MPI_SUCCESS. After an error of hpe, calls the error handler and returns the error code.
  virtual int finish(const MPI_Status* status) = 0;
  /// Called when the operation has failed, or when the program has freed its request. Copies no bytes to the program's
  /// buffers.
  virtual void drop() noexcept = 0;
  /// Whether MPI is using the operation's buffers.
  [[nodiscard]] virtual bool active() = 0;

  [[nodiscard]] bool uses(MPI_Comm comm) const;
  /// Called when the program disconnects communicator `comm`. If the operation uses this communicator, hpe calls the
  /// error handler of MPI_COMM_WORLD for later errors of the operation.
  void forget(MPI_Comm comm);

 protected:
  [[nodiscard]] mpi_object object() const;

 private:
  mutable mutex object_mutex_;
  mpi_object object_ HPE_GUARDED_BY(object_mutex_);
};

/// An operation that MPI itself carries out, with its staged buffers.
class staged_pending final : public pending {
 public:
  /// `received`: the status contains the number of received bytes. `failure`: why a buffer could not be staged;
  /// finish() then reports this error and copies no bytes.
  staged_pending(mpi_object object, std::vector<staged_buffer> buffers, bool received, bool persistent,
                 std::optional<error> failure)
      : pending(object, persistent), buffers_(std::move(buffers)), received_(received), failure_(std::move(failure)) {}

  int begin() override;
  /// To the program's buffers, copies the bytes that MPI has written. If a message is longer than the buffer, copies no
  /// byte of the message; MPI itself reports this error (MPI_ERR_TRUNCATE).
  int finish(const MPI_Status* status) override;
  void drop() noexcept override;
  [[nodiscard]] bool active() override;
  /// Whether finish() may be called as soon as is_complete() returns true. This holds for receives, and for operations
  /// in which MPI writes no buffer, if all buffers could be staged. For any other operation, only a wait or a test
  /// returns whether the operation has failed.
  [[nodiscard]] bool known_when_complete() const;

 private:
  void copy_back(const MPI_Status* status) HPE_REQUIRES(mutex_);

  mutable mutex mutex_;
  std::vector<staged_buffer> buffers_ HPE_GUARDED_BY(mutex_);
  const bool received_;
  const std::optional<error> failure_;
  bool active_ HPE_GUARDED_BY(mutex_) = true;
};

/// Thread safe.
class pending_table {
 public:
  /// Returns the table of the process, which is never destroyed.
  static pending_table& all();

  /// Whether the table contains no request. Costs one load.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  void add(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] std::shared_ptr<pending> find(MPI_Request request);
  /// Like find, for a wait or a test. Until `put_back` or `remove`, no request leads to a non-persistent operation,
  /// because MPI may reuse the handle for an operation of another thread before this thread returns from MPI. Call
  /// `put_back` if the operation is not complete after the wait or test, and `remove` if it is.
  [[nodiscard]] std::shared_ptr<pending> take(MPI_Request request);
  void put_back(MPI_Request request, const std::shared_ptr<pending>& operation);
  /// Call this when MPI has replaced the handle of the operation's request.
  void move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation);
  /// Removes the operation of a request from the table, if the table contains it.
  void remove(MPI_Request request, const std::shared_ptr<pending>& operation);

  /// Call this when the program has freed the request of an active operation. `look_at_freed` finishes these operations
  /// when they are complete.
  void abandon(MPI_Request request, std::shared_ptr<pending> operation);
  /// Call this when the program frees communicator `comm`. If operations of the table use it, returns true, and
  /// `look_at_freed` frees the communicator when these operations have ended and the program has freed the persistent
  /// ones. Otherwise returns false, and the caller must free the communicator.
  [[nodiscard]] bool keep(MPI_Comm comm);
  /// Whether there are requests or communicators that the program has freed, and that hpe has to look at.
  [[nodiscard]] bool any_freed() const noexcept { return freed_count_.load(std::memory_order_relaxed) != 0; }
  /// Finishes the operations of freed requests that are complete, and frees the communicators that no operation uses
  /// any more. Has no effect while the calling thread holds a progress::guard.
  void look_at_freed();
  /// Frees the communicators that `keep` has kept, even if operations use them. The operations must not start again.
  void free_communicators();

  /// Adds a one-sided operation, which completes when the program next synchronises the window with the target.
  void add(MPI_Win win, int target, std::shared_ptr<pending> operation);
  /// Finishes the window's operations on rank `target`, or on all ranks if target < 0. Returns the first error, or
  /// MPI_SUCCESS.
  int finish(MPI_Win win, int target);
  /// Call this when the program frees the window. Ends the window's operations without copying bytes.
  void drop(MPI_Win win);

  /// Whether operations of hpe's own, or operations whose requests the program has freed, are active on communicator
  /// `comm`.
  [[nodiscard]] bool any_active(MPI_Comm comm);
  /// Calls forget(comm) of all operations, also of those that threads have taken or are looking at.
  void forget(MPI_Comm comm);

 private:
  struct entry {
    std::shared_ptr<pending> operation;
    bool taken = false;  // a thread waits for the operation or tests it
  };
  using entries = std::unordered_multimap<MPI_Request, entry>;  // at most one entry of each request is not taken

  // Returns by_request_.end() if there is none.
  [[nodiscard]] entries::iterator find_untaken(MPI_Request request) HPE_REQUIRES(mutex_);
  [[nodiscard]] entries::iterator find_entry(MPI_Request request, const std::shared_ptr<pending>& operation)
      HPE_REQUIRES(mutex_);

  struct one_sided {
    MPI_Win win;
    int target;
    std::shared_ptr<pending> operation;
  };
  struct abandoned {
    MPI_Request request;
    std::shared_ptr<pending> operation;
    enum class phase { waits, ends, over } now = phase::waits;  // only the thread that holds looking_ may use it
  };
  struct kept_communicator {
    MPI_Comm comm;
    std::vector<std::weak_ptr<pending>> users;
  };

  // Returns the operations that use communicator `comm`, also those that threads have taken or are looking at.
  [[nodiscard]] std::vector<std::shared_ptr<pending>> users_of(MPI_Comm comm);
  void look_at_abandoned();
  template <class Condition>
  void free_communicators(Condition&& may_free);
  void count_freed() HPE_REQUIRES(mutex_);

  // Held while a thread looks at abandoned operations, so that no other thread misses them. finish() may call an error
  // handler of the program, whose MPI calls look again.
  std::recursive_mutex looking_;
  mutex mutex_;
  entries by_request_ HPE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<abandoned>> abandoned_ HPE_GUARDED_BY(mutex_);
  std::vector<kept_communicator> kept_ HPE_GUARDED_BY(mutex_);
  std::vector<one_sided> one_sided_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> freed_count_{0};  // of abandoned_ and kept_ together
};

/// Returns `result`, after look_at_freed(). Most wrappers return their results through this function.
inline int leave(int result) {
  if (pending_table::all().any_freed()) [[unlikely]]
    pending_table::all().look_at_freed();
  return result;
}

/// Whether a request is complete. If it is, stores the operation's status in `status`. Does not free the request. With
/// Open MPI, the status does not contain the error of a failed operation.
[[nodiscard]] bool is_complete(MPI_Request request, MPI_Status& status);

/// Returns the number of bytes that a completed receive or file read has written. The operation must not have been
/// cancelled.
[[nodiscard]] std::size_t bytes_received(const MPI_Status& status);

}  // namespace hpe::interpose::mpi
