#pragma once

/// Carries out one call of an MPI function with buffers in hpe memory or device memory. The wrappers use this class.
/// For each buffer argument, the wrapper calls `in`, `out`, `inout` or `received` with the layout of the buffer; these
/// functions replace the argument by the address of memory that MPI may use. `run`, `start` or `prepare` then calls
/// MPI. To the program's buffers, hpe copies the bytes that MPI has written: after a blocking call at once, after a
/// non-blocking call when the operation has completed.

#include <optional>
#include <utility>

#include "interpose/mpi/pending.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

template <class... Pointers>
[[nodiscard]] bool any_concerns(Pointers... buffers) noexcept {
  return (concerns(buffers) || ...);
}
/// The same, for an operation that outlives its call.
template <class... Pointers>
[[nodiscard]] bool operation_concerns(Pointers... buffers) noexcept {
  return (concerns_operation(buffers) || ...);
}

/// The kinds of calls, by what happens if a buffer cannot be staged.
enum class operation_kind : std::uint8_t {
  single,  ///< if a buffer cannot be staged, the call fails without calling MPI
  /// If a buffer cannot be staged, the rank takes part with other memory, because other ranks wait for it; the call
  /// fails at the end.
  collective,
  persistent  ///< like `single`, for a call that creates a persistent request
};

class operation {
 public:
  operation(mpi_object object, operation_kind which) : object_(object), kind_(which) {}

  /// Whether a buffer of a collective call could not be staged. hpe reports the error when the operation has completed.
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }

  template <class Pointer>
  void in(Pointer& buffer, layout which) {
    stage(buffer, std::move(which), host_use::read);
  }
  template <class Pointer>
  void out(Pointer& buffer, layout which) {
    stage(buffer, std::move(which), host_use::write);
  }
  template <class Pointer>
  void inout(Pointer& buffer, layout which) {
    stage(buffer, std::move(which), host_use::read_write);
  }
  template <class Pointer>
  void received(Pointer& buffer, layout which) {
    received_ = true;
    stage(buffer, std::move(which), host_use::write);
  }

  /// Runs a blocking call and returns its result. `status` contains the number of bytes that MPI has received. If MPI
  /// returns an error, hpe copies no bytes to the program's buffers.
  template <class Call>
  int run(Call&& call) {
    const int result = call();
    return result == MPI_SUCCESS ? finish(nullptr) : result;
  }
  template <class Call>
  int run(MPI_Status*& status, Call&& call) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE) status = &own;
    const int result = call();
    return result == MPI_SUCCESS ? finish(status) : result;
  }

  /// Starts a non-blocking call and returns its result.
  template <class Call>
  int start(MPI_Request* request, Call&& call) {
    const int result = call();
    return result == MPI_SUCCESS ? started(request) : result;
  }
  /// Start a one-sided call, without or with a request, and return its result. The operation completes when the program
  /// synchronises the window with the target, or when the request completes.
  template <class Call>
  int start(MPI_Win win, int target, Call&& call) {
    const int result = call();
    if (result == MPI_SUCCESS && uses_hpe()) pending_table::all().add(win, target, make_pending());
    return result;
  }
  template <class Call>
  int start(MPI_Request* request, MPI_Win win, int target, Call&& call) {
    const int result = call();
    if (result != MPI_SUCCESS || !uses_hpe()) return result;
    auto it = make_pending();
    pending_table::all().add(win, target, it);
    return started(request, std::move(it));
  }
  /// Creates a persistent request and returns the result of the call.
  template <class Call>
  int prepare(MPI_Request* request, Call&& call) {
    const int result = call();
    if (result == MPI_SUCCESS && uses_hpe()) {
      auto it = make_pending();
      it->drop();
      pending_table::all().add(*request, std::move(it));
    }
    return result;
  }

 private:
  template <class Pointer>
  void stage(Pointer& buffer, layout which, host_use use) {
    try {
      buffers_.emplace_back(buffer, which, use, kind_ == operation_kind::persistent);
    } catch (const error& e) {
      if (kind_ != operation_kind::collective) throw;
      if (!failure_) failure_ = e;
      buffers_.emplace_back(std::move(which));
    }
    buffer = buffers_.back().pointer();
  }
  [[nodiscard]] bool uses_hpe() const noexcept;
  [[nodiscard]] std::shared_ptr<staged_pending> make_pending();
  int finish(const MPI_Status* status);
  int started(MPI_Request* request);
  static int started(MPI_Request* request, std::shared_ptr<staged_pending> it);

  mpi_object object_;
  operation_kind kind_;
  bool received_ = false;
  std::optional<error> failure_;
  std::vector<staged_buffer> buffers_;
};

/// Calls with_staging(operation&) and returns its result. If it throws left_to_mpi, calls as_it_is(), which calls MPI
/// with the program's arguments. If it throws any other error, calls the error handler of `object` and returns an MPI
/// error.
template <class WithStaging, class AsIs>
int carry_out(mpi_object object, WithStaging&& with_staging, AsIs&& as_it_is,
              operation_kind which = operation_kind::single, const char* function = __builtin_FUNCTION()) {
  const trace::recorded here(trace::category::mpi, function);
  operation op(object, which);
  try {
    return raise_errors(object, [&]() -> int { return with_staging(op); });
  } catch (const left_to_mpi&) {
    return as_it_is();
  }
}

}  // namespace hpe::interpose::mpi
