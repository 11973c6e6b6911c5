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

/// The buffers of one operation. It is over when finish or drop was called; more calls do nothing.
class pending {
 public:
  pending(mpi_object object, std::vector<staged_buffer> buffers, bool received, bool persistent)
      : persistent(persistent), object_(object), buffers_(std::move(buffers)), received_(received) {}

  const bool persistent;

  /// Before each start of a persistent operation. Returns as finish does.
  int begin();
  /// MPI has finished it; status is its own, nullptr where there is none. Puts in place what was written, except of a
  /// message that was too long, because that is an error. Returns MPI_SUCCESS or the error that hpe met, which was
  /// raised.
  int finish(const MPI_Status* status);
  /// It failed or was freed: nothing is put in place.
  void drop() noexcept;
  /// Whether that it is complete tells all there is to know: a failure of others is only seen when they are waited for.
  [[nodiscard]] bool known_when_complete() const;
  /// MPI uses its buffers now.
  [[nodiscard]] bool active();
  /// Errors go to MPI_COMM_WORLD if they would go to this communicator, which the program has freed.
  void forget(MPI_Comm comm);

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
