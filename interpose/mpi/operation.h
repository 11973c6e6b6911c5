#pragma once

/// One call of an MPI function with buffers in memory of hpe: the body of every wrapper. The wrapper names the bytes of
/// each buffer argument; in, out and inout replace the argument by where MPI finds or puts them, and run or start calls
/// MPI and sees to it that what it wrote gets in place, at once or when the operation is over.

#include <utility>

#include "interpose/mpi/pending.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

template <class... Pointers>
[[nodiscard]] bool any_concerns(Pointers... buffers) noexcept {
  return (concerns(buffers) || ...);
}

class operation {
 public:
  operation(mpi_object object, bool persistent) : object_(object), persistent_(persistent) {}

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

  /// A blocking call. With a status: what was received is what that says. Nothing is put in place after an error.
  template <class Call>
  int run(Call&& call) {
    const int result = call();
    if (result == MPI_SUCCESS) finish(nullptr);
    return result;
  }
  template <class Call>
  int run(MPI_Status*& status, Call&& call) {
    MPI_Status own;
    if (status == MPI_STATUS_IGNORE) status = &own;
    const int result = call();
    if (result == MPI_SUCCESS) finish(status);
    return result;
  }

  /// A non-blocking one.
  template <class Call>
  int start(MPI_Request* request, Call&& call) {
    const int result = call();
    return result == MPI_SUCCESS ? started(request) : result;
  }
  /// A one-sided one, over when the window is synchronised with the target, with a request of its own or without.
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
  /// A persistent one.
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
    buffers_.emplace_back(buffer, std::move(which), use, persistent_);
    buffer = buffers_.back().pointer();
  }
  [[nodiscard]] bool uses_hpe() const noexcept;
  [[nodiscard]] std::shared_ptr<staged_pending> make_pending();
  void finish(const MPI_Status* status);
  int started(MPI_Request* request);
  static int started(MPI_Request* request, std::shared_ptr<staged_pending> it);

  mpi_object object_;
  bool persistent_;
  bool received_ = false;
  std::vector<staged_buffer> buffers_;
};

/// Runs with_staging(operation&) and turns what it throws into MPI errors, or calls MPI with the arguments as they
/// are.
template <class WithStaging, class AsIs>
int carry_out(mpi_object object, WithStaging&& with_staging, AsIs&& as_it_is, bool persistent = false,
              const char* function = __builtin_FUNCTION()) {
  const trace::recorded here(trace::category::mpi, function);
  operation op(object, persistent);
  try {
    return with_staging(op);
  } catch (const left_to_mpi&) {
    return as_it_is();
  } catch (const error& e) {
    return raise(object, e);
  } catch (const std::bad_alloc&) {
    return raise(object, error(HPE_ERROR_OUT_OF_MEMORY, "the host has no memory left for the records of a call"));
  }
}

}  // namespace hpe::interpose::mpi
