#pragma once

/// Operations whose buffers MPI uses now, or will use when a persistent request is started again. They are found by
/// their request; one-sided operations are found by their window.

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interpose/mpi/errors.h"
#include "interpose/mpi/staged_buffer.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// An operation whose buffers MPI uses. The first call of finish or drop ends the operation; further calls have no
/// effect until begin restarts it.
class pending {
 public:
  explicit pending(bool persistent) : persistent(persistent) {}
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  const bool persistent;

  /// Called before each start of a persistent operation. Returns MPI_SUCCESS; if hpe fails, raises the error and
  /// returns its code.
  virtual int begin() = 0;
  /// Whether begin itself starts the operation, so that MPI_Start must not be called.
  [[nodiscard]] virtual bool starts_itself() const noexcept { return false; }
  /// The request that is passed to MPI in place of the program's request; MPI_REQUEST_NULL if the program's request
  /// itself is passed.
  [[nodiscard]] virtual MPI_Request stand_in() { return handles::get().request_null; }
  /// Called when MPI has freed the request of stand_in().
  virtual void stand_in_gone() {}
  /// Called before the thread waits in MPI for the end of the operation.
  virtual void await() {}
  /// Called when MPI has completed the operation, with the operation's status (nullptr if there is no status). Returns
  /// MPI_SUCCESS; if hpe fails, raises the error and returns its code.
  virtual int finish(const MPI_Status* status) = 0;
  /// Called when the operation has failed or was freed: no bytes are copied to the program's buffers.
  virtual void drop() noexcept = 0;
  /// Whether MPI is using the operation's buffers.
  [[nodiscard]] virtual bool active() = 0;
  /// Called when the program frees this communicator: later errors of the operation are raised on MPI_COMM_WORLD.
  virtual void forget(MPI_Comm comm) = 0;
};

/// An operation that MPI itself makes, with its staged buffers.
class staged_pending final : public pending {
 public:
  /// `failure` is the error for which a buffer could not be staged: finish() raises it and copies no bytes.
  staged_pending(mpi_object object, std::vector<staged_buffer> buffers, bool received, bool persistent,
                 std::optional<error> failure)
      : pending(persistent),
        object_(object),
        buffers_(std::move(buffers)),
        received_(received),
        failure_(std::move(failure)) {}

  int begin() override;
  /// Copies the bytes that MPI has written to the program's buffers. If a message is longer than the buffer, this is an
  /// error, and no byte of the message is copied.
  int finish(const MPI_Status* status) override;
  void drop() noexcept override;
  [[nodiscard]] bool active() override;
  void forget(MPI_Comm comm) override;
  /// Whether the operation can be finished as soon as is_complete() is true. This is the case for receives, and for
  /// operations in which MPI writes no buffer. For any other operation, only a wait or a test shows whether it has
  /// failed.
  [[nodiscard]] bool known_when_complete() const;

 private:
  mutable mutex mutex_;
  mpi_object object_ HPE_GUARDED_BY(mutex_);
  std::vector<staged_buffer> buffers_ HPE_GUARDED_BY(mutex_);
  const bool received_;
  const std::optional<error> failure_;
  bool active_ HPE_GUARDED_BY(mutex_) = true;
};

/// Thread safe.
class pending_table {
 public:
  /// The table of the process, which is never destroyed.
  static pending_table& all();

  /// Whether the table contains no request. Costs one load.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  void add(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] std::shared_ptr<pending> find(MPI_Request request);
  /// Like find, for a wait or a test. Removes a non-persistent operation from the table, because MPI may give the
  /// handle to another thread before this thread returns from MPI. If the operation is not complete, `put_back` adds it
  /// to the table again.
  [[nodiscard]] std::shared_ptr<pending> take(MPI_Request request);
  void put_back(MPI_Request request, std::shared_ptr<pending> operation) { add(request, std::move(operation)); }
  /// To be called when MPI has replaced the handle of this operation's request.
  void move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation);
  /// Removes the request from the table if the request still belongs to this operation.
  void remove(MPI_Request request, const std::shared_ptr<pending>& operation);

  /// To be called when the program has freed the request of an active operation. `look_at_abandoned` finishes the
  /// operation when it is complete.
  void abandon(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] bool any_abandoned() const noexcept { return abandoned_count_.load(std::memory_order_relaxed) != 0; }
  void look_at_abandoned();

  /// Adds a one-sided operation, which completes when the window is next synchronised with the target.
  void add(MPI_Win win, int target, std::shared_ptr<pending> operation);
  /// Finishes the window's operations on one target, or on all targets if target < 0. Returns the first error, or
  /// MPI_SUCCESS.
  int finish(MPI_Win win, int target);
  /// To be called when the program frees the window, which ends the window's operations.
  void drop(MPI_Win win);

  void forget(MPI_Comm comm);

 private:
  struct one_sided {
    MPI_Win win;
    int target;
    std::shared_ptr<pending> operation;
  };

  mutex mutex_;
  std::unordered_map<MPI_Request, std::shared_ptr<pending>> by_request_ HPE_GUARDED_BY(mutex_);
  std::vector<std::pair<MPI_Request, std::shared_ptr<pending>>> abandoned_ HPE_GUARDED_BY(mutex_);
  std::vector<one_sided> one_sided_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> abandoned_count_{0};
};

/// Every wrapper returns its result through this function, which also finishes abandoned operations.
inline int leave(int result) {
  if (pending_table::all().any_abandoned()) [[unlikely]]
    pending_table::all().look_at_abandoned();
  return result;
}

/// Whether a request is complete; if it is, sets its status. The request remains allocated. With Open MPI, the status
/// does not show whether the operation has failed.
[[nodiscard]] bool is_complete(MPI_Request request, MPI_Status& status);

/// The number of bytes that a completed receive or file read has delivered. The operation must not have been cancelled.
[[nodiscard]] std::size_t bytes_received(const MPI_Status& status);

}  // namespace hpe::interpose::mpi
