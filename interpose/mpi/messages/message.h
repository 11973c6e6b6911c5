#pragma once

/// A send or receive that may go by the protocol of this folder. What the program holds is a generalised request of
/// MPI, so every way to wait, test, cancel or free works on it, beside requests of any other kind. A persistent
/// operation has one for each start; the program's handle of it is a request that never starts, and calls that take
/// requests look up what stands for it.

#include <atomic>
#include <memory>
#include <optional>

#include "interpose/mpi/pending.h"

namespace hpe::interpose::mpi {

class message : public pending, public std::enable_shared_from_this<message> {
 public:
  message(MPI_Comm comm, bool persistent);

  /// Makes the program's request and starts, or waits for a start. Returns an error of MPI, with nothing begun.
  int open(MPI_Request* request);
  /// Without a request, for blocking calls. Waits in MPI; returns what the call returns.
  int carry_out(MPI_Status* status);
  /// The same in two steps.
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
  /// Of a persistent operation, once.
  virtual int make() { return MPI_SUCCESS; }
  /// Before each start: waits for what it needs. Throws hpe::error.
  virtual void prepare() {}
  /// Starts the operation of MPI behind it. Under progress::guard. Returns an error of MPI, with nothing begun.
  virtual int start() = 0;
  /// The program wants it cancelled. Under progress::guard.
  virtual void cancel() {}

  /// Once for each start: it is over with this status and what MPI called a handler with, or what went wrong in hpe.
  void conclude(const MPI_Status& status, int code);
  void conclude(const MPI_Status& status, const std::optional<error>& failure);
  /// Over with an error of MPI that nobody knows of yet.
  void conclude_with_new_error(const MPI_Status& status, int code);

 private:
  friend struct message_callbacks;

  int start_with_request();
  void end(const MPI_Status& status);

  mpi_object object_;
  MPI_Request current_;  // of this start
  bool has_request_ = false;
  std::atomic<bool> over_{true};
  MPI_Status status_{};
  int code_ = MPI_SUCCESS;
  bool tell_code_ = false;  // its handler was not called yet
  std::optional<error> failure_;
};

}  // namespace hpe::interpose::mpi
