#pragma once

/// Tells the check of a program (HPE_CHECK) which buffers MPI uses, and until when: during a blocking call, or until a
/// function of MPI has completed the request.

#include <cstdint>
#include <vector>

#include "interpose/message_checks.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Whether the calling thread is in a function of MPI that the program has called, in a program that is checked.
[[nodiscard]] bool is_in_checked_call() noexcept;
/// Whether the program is checked, and the program itself makes the call, not a wrapper.
[[nodiscard]] inline bool is_checked() noexcept {
  return message_checks::of_process() != nullptr && !is_in_checked_call();
}

/// While the object exists, the calling thread is in a function of MPI.
class checked_thread {
 public:
  checked_thread() noexcept;
  ~checked_thread();
  checked_thread(const checked_thread&) = delete;
  checked_thread& operator=(const checked_thread&) = delete;

 private:
  message_checks* const checks_;
};

/// A call of a function with buffers, in a program that is checked. `function`: its name, which must exist until the
/// process ends.
class checked_call {
 public:
  explicit checked_call(const char* function) noexcept : function_(function) {}
  ~checked_call();
  checked_call(const checked_call&) = delete;
  checked_call& operator=(const checked_call&) = delete;

  /// Adds a buffer. `bytes()` returns its layout.
  template <class Bytes>
  void add(const void* pointer, bool is_written, const Bytes& bytes) noexcept {
    if (pointer == nullptr || pointer == MPI_IN_PLACE) return;
    try {
      add_stretches(pointer, is_written, bytes());
    } catch (...) {  // NOLINT(bugprone-empty-catch): MPI itself reports the wrong argument
    }
  }
  /// Call this after add(), before MPI's function.
  void begin();
  /// Calls for the results of MPI's function; each returns `result`. `lasts`: MPI uses the buffers until the request is
  /// complete. `made`: each start of the request uses the buffers.
  [[nodiscard]] int lasts(int result, const MPI_Request* request);
  [[nodiscard]] int made(int result, const MPI_Request* request);

 private:
  void add_stretches(const void* pointer, bool is_written, const layout& which);

  const checked_thread here_;
  const char* function_;
  std::vector<message_checks::buffer> buffers_;
  std::uint64_t use_ = 0;  // 0: none, or it lasts longer than the call
};

/// A call of a function that may complete or start requests.
class checked_requests {
 public:
  /// `keeps`: MPI completes operations without freeing their requests.
  checked_requests(int count, MPI_Request* requests, bool keeps = false);
  ~checked_requests();
  checked_requests(const checked_requests&) = delete;
  checked_requests& operator=(const checked_requests&) = delete;

  /// For MPI_Start and MPI_Startall.
  void start(const char* function);
  /// For MPI_Request_free: the program will not know when MPI no longer uses the buffers.
  void freed();

 private:
  const bool is_checked_ = is_checked();  // before the thread is in MPI
  const checked_thread here_;
  MPI_Request* now_;
  const bool keeps_;
  std::vector<MPI_Request> before_;  // empty: the program is not checked
};

}  // namespace hpe::interpose::mpi
