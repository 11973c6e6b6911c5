#pragma once

/// A send or receive that may go by the protocol of this folder. The program holds a generalised request of MPI, so
/// every way to wait, test, cancel or free works on it, beside requests of any other kind. A persistent operation has
/// one generalised request for each start; the program's handle is a persistent request that never starts, and calls
/// that take requests replace it by the generalised request.

#include <atomic>
#include <memory>
#include <optional>

#include "interpose/mpi/pending.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

/// Puts a part of a message, from `begin` until now, into the trace.
void record_part(const char* name, trace::clock::time_point begin, std::size_t bytes) noexcept;

class message : public pending, public std::enable_shared_from_this<message> {
 public:
  message(MPI_Comm comm, bool persistent);

  /// Makes the program's request; starts the operation unless it is persistent. On an error of MPI nothing has begun.
  int open(MPI_Request* request);
  /// For blocking calls: starts without a request and waits in MPI. Returns the result of the program's call.
  int carry_out(MPI_Status* status);
  /// carry_out() in two steps.
  int launch();
  int wait(MPI_Status* status);

  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

  // For the calls that take requests (pending.h).
  int begin() override;
  int finish(const MPI_Status* status) override;
  void drop() noexcept override {}
  [[nodiscard]] bool active() override;
  void forget(MPI_Comm comm) override;
  [[nodiscard]] bool starts_itself() const noexcept override { return true; }
  [[nodiscard]] MPI_Request stand_in() override;
  void stand_in_gone() override;

 protected:
  /// Called once, when a persistent operation is made. Returns an error of MPI or MPI_SUCCESS.
  virtual int make() { return MPI_SUCCESS; }
  /// Called before each start, without a guard; may wait for devices. Throws hpe::error.
  virtual void prepare() {}
  /// Starts the underlying operation of MPI, under progress::guard. On an error of MPI nothing has begun.
  virtual int start() = 0;
  /// Called under progress::guard when the program cancels the operation.
  virtual void cancel() {}

  /// Called once for each start, when it is over. `code` is an error of MPI that its error handler has already got;
  /// `failure` is an error of hpe, for which finish() calls the error handler.
  void conclude(const MPI_Status& status, int code);
  void conclude(const MPI_Status& status, const std::optional<error>& failure);
  /// As conclude(), with an error of MPI for which finish() is to call the error handler.
  void conclude_with_new_error(const MPI_Status& status, int code);

 private:
  friend struct message_callbacks;

  int start_with_request();
  void end(const MPI_Status& status);

  mpi_object object_;
  MPI_Request current_;  // generalised request of this start
  bool has_request_ = false;
  std::atomic<bool> over_{true};
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  bool tell_code_ = false;  // the error handler has not got code_ yet
  std::optional<error> failure_;
};

}  // namespace hpe::interpose::mpi
