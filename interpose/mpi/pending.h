#pragma once

/// Operations whose buffers MPI uses, or will use when a persistent request starts again: by request, and by window for
/// one-sided operations.

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interpose/mpi/errors.h"
#include "interpose/mpi/staged_buffer.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// One operation. The first call of finish or drop ends it; more calls do nothing until begin restarts it.
class pending {
 public:
  explicit pending(bool persistent) : persistent(persistent) {}
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  const bool persistent;

  /// Called before each start of a persistent operation. Returns MPI_SUCCESS, or hpe's error after raising it.
  virtual int begin() = 0;
  /// Whether begin itself starts the operation, so that MPI_Start must not be called.
  [[nodiscard]] virtual bool starts_itself() const noexcept { return false; }
  /// The request that MPI gets in place of the program's request; MPI_REQUEST_NULL if MPI gets the program's request.
  [[nodiscard]] virtual MPI_Request stand_in() { return handles::get().request_null; }
  /// MPI has freed the request that stands in for the program's request.
  virtual void stand_in_gone() {}
  /// Called before the thread waits in MPI until the operation is complete.
  virtual void await() {}
  /// MPI has completed the operation, with this status (nullptr if it has none). Returns MPI_SUCCESS, or hpe's error
  /// after raising it.
  virtual int finish(const MPI_Status* status) = 0;
  /// The operation failed or was freed: no bytes are put in place.
  virtual void drop() noexcept = 0;
  /// Whether MPI uses the operation's buffers now.
  [[nodiscard]] virtual bool active() = 0;
  /// The program frees this communicator: errors that would go to it go to MPI_COMM_WORLD.
  virtual void forget(MPI_Comm comm) = 0;
};

/// The staged buffers of an operation that MPI itself carries out.
class staged_pending final : public pending {
 public:
  /// `failure` says why one of the buffers could not be staged: finish() raises it and puts no bytes in place.
  staged_pending(mpi_object object, std::vector<staged_buffer> buffers, bool received, bool persistent,
                 std::optional<error> failure)
      : pending(persistent),
        object_(object),
        buffers_(std::move(buffers)),
        received_(received),
        failure_(std::move(failure)) {}

  int begin() override;
  /// Puts in place the bytes that MPI wrote. A message longer than the buffer is an error: none of it is put in place.
  int finish(const MPI_Status* status) override;
  void drop() noexcept override;
  [[nodiscard]] bool active() override;
  void forget(MPI_Comm comm) override;
  /// Whether is_complete alone suffices to finish the operation: true for receives, and if MPI writes no buffer. The
  /// failure of any other operation appears only in a wait or a test.
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
  /// The table of the process; never destroyed.
  static pending_table& all();

  /// Whether the table has no request. Costs one load.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  void add(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] std::shared_ptr<pending> find(MPI_Request request);
  /// As find, for a wait or a test. Takes a non-persistent operation out of the table, because MPI may give the handle
  /// to another thread before this thread is back from MPI. put_back returns an operation that is not complete.
  [[nodiscard]] std::shared_ptr<pending> take(MPI_Request request);
  void put_back(MPI_Request request, std::shared_ptr<pending> operation) { add(request, std::move(operation)); }
  /// MPI has replaced the handle of this operation's request.
  void move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation);
  /// Removes the request from the table if it still belongs to this operation.
  void remove(MPI_Request request, const std::shared_ptr<pending>& operation);

  /// The program has freed the request of an active operation. look_at_abandoned finishes it once it is complete.
  void abandon(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] bool any_abandoned() const noexcept { return abandoned_count_.load(std::memory_order_relaxed) != 0; }
  void look_at_abandoned();

  /// Adds a one-sided operation, which completes at the next synchronisation of the window with that target.
  void add(MPI_Win win, int target, std::shared_ptr<pending> operation);
  /// Finishes the window's operations at one target, or at all targets if target < 0. Returns the first error.
  int finish(MPI_Win win, int target);
  /// The program frees the window, so its operations are over.
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

/// Every wrapper returns through this function.
inline int leave(int result) {
  if (pending_table::all().any_abandoned()) [[unlikely]]
    pending_table::all().look_at_abandoned();
  return result;
}

/// Whether a request is complete, and its status. The request stays allocated. Open MPI does not tell here whether the
/// operation failed.
[[nodiscard]] bool is_complete(MPI_Request request, MPI_Status& status);

/// How many bytes a completed receive or file read delivered. The operation must not have been cancelled.
[[nodiscard]] std::size_t bytes_received(const MPI_Status& status);

}  // namespace hpe::interpose::mpi
