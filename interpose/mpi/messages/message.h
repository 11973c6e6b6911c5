#pragma once

/// A send or receive that may use the protocol of this folder. The program's request is a generalised request of MPI.
/// All functions that wait, test, cancel or free accept a generalised request, even together with other kinds of
/// requests. A persistent operation has one generalised request for each start. The program's handle is a persistent
/// request that is never started; calls with requests replace this handle by the generalised request.

#include <atomic>
#include <memory>
#include <optional>

#include "interpose/mpi/pending.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

/// Adds a part of a message, from `begin` until now, to the trace.
void record_part(const char* name, trace::clock::time_point begin, std::size_t bytes) noexcept;

class message : public pending, public std::enable_shared_from_this<message> {
 public:
  message(MPI_Comm comm, bool persistent);

  /// Makes the program's request. Also starts the operation, unless the operation is persistent. If MPI returns an
  /// error, nothing has begun.
  int open(MPI_Request* request);
  /// For blocking calls: starts the operation without a request and waits in MPI. Returns the result of the program's
  /// call.
  int carry_out(MPI_Status* status);
  /// The two steps of carry_out(): the start and the wait.
  int launch();
  int wait(MPI_Status* status);

  [[nodiscard]] bool over() const noexcept { return over_.load(std::memory_order_acquire); }

  // For calls of the program with requests (pending.h).
  int begin() override;
  int finish(const MPI_Status* status) override;
  void drop() noexcept override {}
  [[nodiscard]] bool active() override;
  void forget(MPI_Comm comm) override;
  [[nodiscard]] bool starts_itself() const noexcept override { return true; }
  [[nodiscard]] MPI_Request stand_in() override;
  void stand_in_gone() override;

 protected:
  /// Called once when a persistent operation is made. Returns MPI_SUCCESS or an error of MPI.
  virtual int make() { return MPI_SUCCESS; }
  /// Called before each start, without a guard; it may wait for devices. Throws hpe::error.
  virtual void prepare() {}
  /// Starts the underlying operation of MPI. Called while a progress::guard exists. If MPI returns an error, nothing
  /// has begun.
  virtual int start() = 0;
  /// Called while a progress::guard exists, when the program cancels the operation.
  virtual void cancel() {}

  /// To be called once for each start, when the operation is over. `code` is an error of MPI that has already been
  /// passed to the error handler. `failure` is an error of hpe, for which finish() calls the error handler.
  void conclude(const MPI_Status& status, int code);
  void conclude(const MPI_Status& status, const std::optional<error>& failure);
  /// Like conclude(), with an error of MPI for which finish() must call the error handler.
  void conclude_with_new_error(const MPI_Status& status, int code);

 private:
  friend struct message_callbacks;

  int start_with_request();
  void end(const MPI_Status& status);

  mpi_object object_;
  MPI_Request current_;  // the generalised request of the current start
  bool has_request_ = false;
  std::atomic<bool> over_{true};
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  bool tell_code_ = false;  // whether code_ must still be passed to the error handler
  std::optional<error> failure_;
};

}  // namespace hpe::interpose::mpi
