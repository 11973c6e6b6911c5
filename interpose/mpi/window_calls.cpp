// Wrappers of the functions that create, synchronise and free windows. windows.h describes windows over hpe memory and
// memory of the CUDA driver.
// Functions that end an epoch or flush it also finish the one-sided operations that this process has begun (pending.h).

#include "interpose/mpi/pending.h"
#include "interpose/mpi/windows.h"
#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

constexpr int all_targets = -1;
constexpr int no_target = -2;

int attempt(const mpi_object& told, const std::shared_ptr<window>& it, void (window::*step)()) {
  try {
    ((*it).*step)();
    return MPI_SUCCESS;
  } catch (const error& e) {
    return raise(told, e);
  }
}

// Synchronises a window: publish(), MPI's function, take_in(). Calls MPI even if publish() has failed, because other
// processes wait for the call. Returns the first error.
template <class Call>
int synchronise(MPI_Win win, int target, Call&& call) {
  const auto it = window_table::all().find(win);
  const int before = it != nullptr ? attempt(on_win{win}, it, &window::publish) : MPI_SUCCESS;
  int result = call();
  if (result != MPI_SUCCESS) return leave(result);
  if (target != no_target) result = pending_table::all().finish(win, target);
  const int after = it != nullptr ? attempt(on_win{win}, it, &window::take_in) : MPI_SUCCESS;
  if (result == MPI_SUCCESS) result = before != MPI_SUCCESS ? before : after;
  return leave(result);
}

template <class Unit, class Next>
int create(void* base, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win, Next& next) {
  if (size <= 0 || base == nullptr || !concerns_operation(base))
    return leave(next(base, size, disp_unit, info, comm, win));
  try {
    auto made = std::make_shared<window>(base, static_cast<std::size_t>(size));
    const int result = next(made->exposed(), size, disp_unit, info, comm, win);
    if (result == MPI_SUCCESS) window_table::all().add(*win, std::move(made));
    return leave(result);
  } catch (const error& e) {
    return leave(raise(on_comm{comm}, e));
  } catch (const std::bad_alloc&) {
    return leave(
        raise(on_comm{comm}, error(HPE_ERROR_OUT_OF_MEMORY, "the host has no memory left for a window's copy")));
  }
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

extern "C" {

int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create(base, size, disp_unit, info, comm, win, HPE_REAL(Win_create));
}

__attribute__((visibility("default"))) int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit,
                                                            MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create(base, size, disp_unit, info, comm, win, HPE_REAL(Win_create_c));
}

int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  if (size <= 0 || base == nullptr || !concerns_operation(base)) return leave(HPE_REAL(Win_attach)(win, base, size));
  return leave(
      raise(on_win{win},
            hpe::error(HPE_ERROR_NOT_SUPPORTED,
                       "device memory cannot be attached to a dynamic window, because other processes would use its "
                       "address directly; create a window with MPI_Win_create")));
}

int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  static int separate = MPI_WIN_SEPARATE;
  const int result = HPE_REAL(Win_get_attr)(win, keyval, value, flag);
  const auto it = window_table::all().find(win);
  if (it != nullptr && result == MPI_SUCCESS && *flag != 0) {
    if (keyval == MPI_WIN_BASE) *static_cast<void**>(value) = it->base();
    if (keyval == MPI_WIN_MODEL) *static_cast<int**>(value) = &separate;
  }
  return leave(result);
}

// Removes the window from the tables before the call of MPI, because MPI may reuse the handle for another window before
// this thread returns from MPI. After the call, the window has no error handler, so hpe calls the error handler of
// MPI_COMM_WORLD for errors.
int MPI_Win_free(MPI_Win* win) {
  auto& next = HPE_REAL(Win_free);
  const MPI_Win freed = win != nullptr ? *win : MPI_Win{};
  const auto it = window_table::all().take(freed);
  pending_table::all().drop(freed);
  int result = it != nullptr ? attempt(on_win{freed}, it, &window::publish) : MPI_SUCCESS;
  if (const int failed = next(win); failed != MPI_SUCCESS) {
    if (it != nullptr) window_table::all().add(freed, it);
    return leave(failed);
  }
  if (it != nullptr && result == MPI_SUCCESS) result = attempt(no_object{}, it, &window::take_in);
  return leave(result);
}

int MPI_Win_fence(int assertion, MPI_Win win) {
  return synchronise(win, all_targets, [&] { return HPE_REAL(Win_fence)(assertion, win); });
}

int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_post)(group, assertion, win); });
}

int MPI_Win_complete(MPI_Win win) {
  return synchronise(win, all_targets, [&] { return HPE_REAL(Win_complete)(win); });
}

int MPI_Win_wait(MPI_Win win) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_wait)(win); });
}

int MPI_Win_test(MPI_Win win, int* flag) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_test)(win, flag); });
}

int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_lock)(type, rank, assertion, win); });
}

int MPI_Win_lock_all(int assertion, MPI_Win win) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_lock_all)(assertion, win); });
}

int MPI_Win_unlock(int rank, MPI_Win win) {
  return synchronise(win, rank, [&] { return HPE_REAL(Win_unlock)(rank, win); });
}

int MPI_Win_unlock_all(MPI_Win win) {
  return synchronise(win, all_targets, [&] { return HPE_REAL(Win_unlock_all)(win); });
}

int MPI_Win_flush(int rank, MPI_Win win) {
  return synchronise(win, rank, [&] { return HPE_REAL(Win_flush)(rank, win); });
}

int MPI_Win_flush_all(MPI_Win win) {
  return synchronise(win, all_targets, [&] { return HPE_REAL(Win_flush_all)(win); });
}

int MPI_Win_flush_local(int rank, MPI_Win win) {
  return synchronise(win, rank, [&] { return HPE_REAL(Win_flush_local)(rank, win); });
}

int MPI_Win_flush_local_all(MPI_Win win) {
  return synchronise(win, all_targets, [&] { return HPE_REAL(Win_flush_local_all)(win); });
}

int MPI_Win_sync(MPI_Win win) {
  return synchronise(win, no_target, [&] { return HPE_REAL(Win_sync)(win); });
}
}
