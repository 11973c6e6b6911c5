#pragma once

/// A send or receive that may use the protocol of this folder (envelope.h). The program gets a generalised request of
/// MPI for the operation, because all functions that wait, test, cancel or free accept generalised requests, even
/// together with other kinds of requests. A persistent operation has a new generalised request for each start. The
/// program's handle of a persistent operation is a persistent request that is never started; the wrappers of functions
/// with requests replace this handle by the generalised request.

#include <atomic>
#include <memory>
#include <optional>

#include "interpose/mpi/pending.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

/// Adds a step of a message's transfer to the trace. The step has lasted from `begin` until the current time.
void record_part(const char* name, trace::clock::time_point begin, std::size_t bytes) noexcept;

class message : public pending, public std::enable_shared_from_this<message> {
 public:
  message(MPI_Comm comm, bool persistent);

  /// Creates the program's request and stores it in `*request`. Also starts the operation, unless the operation is
  /// persistent. Returns MPI_SUCCESS, or an error of MPI; after an error, the operation has not begun.
  int open(MPI_Request* request);
  /// For blocking calls: starts the operation without a request and waits in MPI. Returns the result of the program's
  /// call.
  int carry_out(MPI_Status* status);
  /// The two steps of carry_out(): launch() starts the operation, and wait() waits until it has completed. Both return
  /// MPI_SUCCESS or an error of MPI.
  int launch();
  int wait(MPI_Status* status);

  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

  // For the wrappers of functions with requests (pending.h):
  int begin() override;
  int finish(const MPI_Status* status) override;
  void drop() noexcept override {}
  [[nodiscard]] bool active() override;
  [[nodiscard]] bool starts_itself() const noexcept override { return true; }
  [[nodiscard]] MPI_Request stand_in() override;
  void stand_in_gone() override;
  void cancel() override;

 protected:
  /// Called once when the program creates a persistent operation. Returns MPI_SUCCESS or an error of MPI.
  virtual int make() { return MPI_SUCCESS; }
  /// Called before each start. The caller holds no progress::guard, so the function may wait for devices. Throws
  /// hpe::error.
  virtual void prepare() {}
  /// Starts the underlying operation of MPI. The caller holds a progress::guard. Returns MPI_SUCCESS, or an error of
  /// MPI; after an error, the operation has not begun.
  virtual int start() = 0;
  /// Called when the program cancels the operation and it has not ended. The caller holds a progress::guard.
  virtual void cancel_started() {}

  /// Derived classes call one of these functions once for each start, when the operation has ended. `code`:
  /// MPI_SUCCESS, or an error for which MPI has already called the error handler. `failure`: an error of hpe, for which
  /// finish() calls the error handler.
  void conclude(const MPI_Status& status, int code);
  void conclude(const MPI_Status& status, const std::optional<error>& failure);
  /// Like conclude(), but `code` is an error for which MPI has not called the error handler; finish() calls it.
  void conclude_with_new_error(const MPI_Status& status, int code);

 private:
  friend struct message_callbacks;

  int start_with_request();
  /// Calls start(). If it fails or throws, the operation ends.
  int start_or_end();
  void end(const MPI_Status& status);

  MPI_Request current_;  // the generalised request of the current start
  bool has_request_ = false;
  std::atomic<bool> over_{true};
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  bool tell_code_ = false;  // whether finish() must pass code_ to the error handler
  std::optional<error> failure_;
};

}  // namespace hpe::interpose::mpi
