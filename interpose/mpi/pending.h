#pragma once

/// Operations that have begun and whose buffers MPI still uses: by request, and by window for one-sided ones.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interpose/mpi/errors.h"
#include "interpose/mpi/staged_buffer.h"

namespace hpe::interpose::mpi {

/// One operation. It is over when finish or drop was called; more calls do nothing.
class pending {
 public:
  explicit pending(bool persistent) : persistent(persistent) {}
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  const bool persistent;

  /// Before each start of a persistent operation. Returns as finish does.
  virtual int begin() = 0;
  /// Whether begin starts it, without MPI_Start.
  [[nodiscard]] virtual bool starts_itself() const noexcept { return false; }
  /// What MPI is given in place of the program's request; a null request if that is MPI's own.
  [[nodiscard]] virtual MPI_Request stand_in() { return handles::get().request_null; }
  /// MPI has freed that.
  virtual void stand_in_gone() {}
  /// The thread stays in MPI until it is over.
  virtual void await() {}
  /// MPI has finished it; status is its own, nullptr where there is none. Returns MPI_SUCCESS or the error that hpe
  /// met, which was raised.
  virtual int finish(const MPI_Status* status) = 0;
  /// It failed or was freed: nothing is put in place.
  virtual void drop() noexcept = 0;
  /// MPI uses its buffers now.
  [[nodiscard]] virtual bool active() = 0;
  /// Errors go to MPI_COMM_WORLD if they would go to this communicator, which the program has freed.
  virtual void forget(MPI_Comm comm) = 0;
};

/// The buffers of an operation of MPI itself.
class staged_pending final : public pending {
 public:
  staged_pending(mpi_object object, std::vector<staged_buffer> buffers, bool received, bool persistent)
      : pending(persistent), object_(object), buffers_(std::move(buffers)), received_(received) {}

  int begin() override;
  /// Puts in place what was written, except of a message that was too long, because that is an error.
  int finish(const MPI_Status* status) override;
  void drop() noexcept override;
  [[nodiscard]] bool active() override;
  void forget(MPI_Comm comm) override;
  /// Whether that it is complete tells all there is to know: a failure of others is only seen when they are waited for.
  [[nodiscard]] bool known_when_complete() const;

 private:
  std::mutex mutex_;
  mpi_object object_;
  std::vector<staged_buffer> buffers_;
  const bool received_;
  bool active_ = true;
};

/// Any thread.
class pending_table {
 public:
  /// The one of the process; never destroyed.
  static pending_table& all();

  /// One load.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  void add(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] std::shared_ptr<pending> find(MPI_Request request);
  /// Likewise for a wait or a test. What is not persistent is out of the table until put_back says that it goes on: MPI
  /// may give the handle to another thread before this one is back from MPI.
  [[nodiscard]] std::shared_ptr<pending> take(MPI_Request request);
  void put_back(MPI_Request request, std::shared_ptr<pending> operation) { add(request, std::move(operation)); }
  /// MPI has given the request of this operation another handle.
  void move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation);
  /// Forgets the request if it is (still) this operation's.
  void remove(MPI_Request request, const std::shared_ptr<pending>& operation);

  /// The program has freed the request of an operation that goes on. It is looked at from time to time.
  void abandon(MPI_Request request, std::shared_ptr<pending> operation);
  [[nodiscard]] bool any_abandoned() const noexcept { return abandoned_count_.load(std::memory_order_relaxed) != 0; }
  void look_at_abandoned();

  /// One-sided operations: over at the next synchronisation of the window with that target.
  void add(MPI_Win win, int target, std::shared_ptr<pending> operation);
  /// target < 0: all targets. Returns the first error.
  int finish(MPI_Win win, int target);
  void drop(MPI_Win win);

  void forget(MPI_Comm comm);

 private:
  struct one_sided {
    MPI_Win win;
    int target;
    std::shared_ptr<pending> operation;
  };

  std::mutex mutex_;
  std::unordered_map<MPI_Request, std::shared_ptr<pending>> by_request_;
  std::vector<std::pair<MPI_Request, std::shared_ptr<pending>>> abandoned_;
  std::vector<one_sided> one_sided_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> abandoned_count_{0};
};

/// On the way out of every wrapper.
inline int leave(int result) {
  if (pending_table::all().any_abandoned()) [[unlikely]]
    pending_table::all().look_at_abandoned();
  return result;
}

/// Whether a request is complete, and with what status; it stays as it is. Open MPI does not say here whether it
/// failed.
[[nodiscard]] bool is_complete(MPI_Request request, MPI_Status& status);

/// How many bytes a finished receive or read brought that was not cancelled.
[[nodiscard]] std::size_t bytes_received(const MPI_Status& status);

}  // namespace hpe::interpose::mpi
