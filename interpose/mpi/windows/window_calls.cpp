// Wrappers of the functions that create, synchronise and free windows, and that attach memory to dynamic windows.
// window.h describes windows over hpe memory and memory of the CUDA driver. Functions that end an epoch or flush it
// also finish the one-sided operations that this process has begun (pending.h).

#include "interpose/mpi/pending.h"
#include "interpose/mpi/windows/attached_ranges.h"
#include "interpose/mpi/windows/window.h"
#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

constexpr int all_targets = -1;
constexpr int no_target = -2;
constexpr auto for_copy = "for a window's copy";  // the use of memory in a message

// Runs a step for each element, also after an error. Returns the first error.
int attempt(const mpi_object& told, const window_table::elements& all, void (window::*step)()) {
  int result = MPI_SUCCESS;
  for (const std::shared_ptr<window>& each : all) {
    try {
      ((*each).*step)();
    } catch (const error& e) {
      if (const int failed = raise(told, e); result == MPI_SUCCESS) result = failed;
    }
  }
  return result;
}

// Synchronises a window: publish(), MPI's function, take_in(). Calls MPI even if publish() has failed, because other
// processes wait for the call. Returns the first error.
template <class Call>
int synchronise(MPI_Win win, int target, Call&& call) {
  const window_table::elements all = window_table::all().find(win);
  const int before = attempt(on_win{win}, all, &window::publish);
  int result = call();
  if (result != MPI_SUCCESS) return leave(result);
  if (target != no_target) result = pending_table::all().finish(win, target);
  const int after = attempt(on_win{win}, all, &window::take_in);
  if (result == MPI_SUCCESS) result = before != MPI_SUCCESS ? before : after;
  return leave(result);
}

template <class Unit, class Next>
int create(void* base, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win, Next& next) {
  if (size <= 0 || base == nullptr || !concerns_operation(base))
    return leave(next(base, size, disp_unit, info, comm, win));
  const auto make = [&] {
    auto made = std::make_shared<window>(base, static_cast<std::size_t>(size));
    const int result = next(made->exposed(), size, disp_unit, info, comm, win);
    if (result == MPI_SUCCESS) window_table::all().add(*win, std::move(made));
    return result;
  };
  return leave(raise_errors(on_comm{comm}, make, for_copy));
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

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const int result = HPE_REAL(Win_create_dynamic)(info, comm, win);
  if (result == MPI_SUCCESS) attached_ranges::open(comm, *win);
  return leave(result);
}

int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  auto& next = HPE_REAL(Win_attach);
  if (size <= 0 || base == nullptr || !concerns_operation(base)) return leave(next(win, base, size));
  const auto attach = [&] {
    const auto ranges = attached_ranges::find(win);
    HPE_REQUIRE(ranges != nullptr, HPE_ERROR_NOT_SUPPORTED,
                "device memory cannot be attached to this window: it is not a dynamic window, or some of its ranks do "
                "not use hpe's protocol for messages; create a window with MPI_Win_create");
    auto made = std::make_shared<window>(base, static_cast<std::size_t>(size));
    ranges->add(*made);
    const int result = next(win, made->exposed(), size);
    if (result == MPI_SUCCESS)
      window_table::all().add(win, std::move(made));
    else
      ranges->remove(*made);
    return result;
  };
  return leave(raise_errors(on_win{win}, attach, for_copy));
}

int MPI_Win_detach(MPI_Win win, const void* base) {
  auto& next = HPE_REAL(Win_detach);
  const auto it = window_table::all().take(win, base);
  if (it == nullptr) return leave(next(win, base));
  if (const auto ranges = attached_ranges::find(win)) ranges->remove(*it);
  const int result = next(win, it->exposed());
  const int after = attempt(on_win{win}, {it}, &window::take_in);
  return leave(result != MPI_SUCCESS ? result : after);
}

int MPI_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag) {
  static int separate = MPI_WIN_SEPARATE;
  const int result = HPE_REAL(Win_get_attr)(win, keyval, value, flag);
  const window_table::elements all = window_table::all().find(win);
  if (!all.empty() && result == MPI_SUCCESS && *flag != 0) {
    if (keyval == MPI_WIN_BASE && attached_ranges::find(win) == nullptr) *static_cast<void**>(value) = all[0]->base();
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
  const window_table::elements all = window_table::all().take(freed);
  const auto ranges = attached_ranges::take(freed);
  pending_table::all().drop(freed);
  int result = attempt(on_win{freed}, all, &window::publish);
  if (const int failed = next(win); failed != MPI_SUCCESS) {
    for (const auto& each : all) window_table::all().add(freed, each);
    attached_ranges::store(freed, ranges);
    return leave(failed);
  }
  if (result == MPI_SUCCESS) result = attempt(no_object{}, all, &window::take_in);
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
