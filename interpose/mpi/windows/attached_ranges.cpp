#include "interpose/mpi/windows/attached_ranges.h"

#include <algorithm>
#include <map>
#include <new>

#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/job.h"
#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

struct open_windows {
  static open_windows& all() {
    static auto* const it = new open_windows;
    return *it;
  }

  mutex mutex_;
  std::map<MPI_Win, std::shared_ptr<attached_ranges>> by_window_ HPE_GUARDED_BY(mutex_);
};

MPI_Aint address_of(const void* p) { return static_cast<MPI_Aint>(reinterpret_cast<std::uintptr_t>(p)); }

// Whether all ranks of a communicator take part in hpe's protocol. All ranks of the communicator get the same answer.
bool all_use_hpe(MPI_Comm comm, int ranks) {
  if (job::current() == nullptr) return false;
  for (int r = 0; r < ranks; ++r)
    if (job::world_rank(comm, r) == MPI_UNDEFINED) return false;
  return true;
}

}  // namespace

std::atomic<std::size_t> attached_ranges::open_count{0};

void attached_ranges::open(MPI_Comm comm, MPI_Win win) {
  const int rank = rank_in(comm);
  const int ranks = local_members(comm);
  if (!all_use_hpe(comm, ranks)) return;
  // With a communicator of its own, an error of these calls does not reach the program's error handler. Unlike
  // MPI_Comm_dup, MPI_Comm_split does not call the program's functions that copy attributes.
  MPI_Comm own{};
  if (HPE_REAL(Comm_split)(comm, 0, rank, &own) != MPI_SUCCESS) return;
  HPE_REAL(Comm_set_errhandler)(own, handles::get().errors_return);
  void* memory = nullptr;
  MPI_Win directories{};
  int made = HPE_REAL(Win_allocate)(sizeof(directory), 1, handles::get().info_null, own, static_cast<void*>(&memory),
                                    &directories) == MPI_SUCCESS;
  int made_everywhere = 0;
  HPE_REAL(Allreduce)(&made, &made_everywhere, 1, handles::get().integer, handles::get().min, own);
  if (made_everywhere != 0) {
    HPE_REAL(Win_set_errhandler)(directories, handles::get().errors_return);
    store(win, std::shared_ptr<attached_ranges>(
                   new attached_ranges(own, directories, new (memory) directory{}, rank, ranks)));
  }
  // No rank may read a directory before its owner has initialised it.
  HPE_REAL(Barrier)(own);
  if (made_everywhere == 0) HPE_REAL(Comm_free)(&own);
}

attached_ranges::~attached_ranges() {
  const lock_guard lock(mutex_);
  HPE_REAL(Win_free)(&directories_);
  HPE_REAL(Comm_free)(&comm_);
}

std::shared_ptr<attached_ranges> attached_ranges::find(MPI_Win win) {
  if (open_count.load(std::memory_order_relaxed) == 0) return nullptr;
  open_windows& all = open_windows::all();
  const lock_guard lock(all.mutex_);
  const auto found = all.by_window_.find(win);
  return found != all.by_window_.end() ? found->second : nullptr;
}

std::shared_ptr<attached_ranges> attached_ranges::take(MPI_Win win) {
  open_windows& all = open_windows::all();
  const lock_guard lock(all.mutex_);
  auto found = all.by_window_.extract(win);
  open_count.store(all.by_window_.size(), std::memory_order_relaxed);
  return found ? std::move(found.mapped()) : nullptr;
}

void attached_ranges::store(MPI_Win win, std::shared_ptr<attached_ranges> directories) {
  if (directories == nullptr) return;
  open_windows& all = open_windows::all();
  const lock_guard lock(all.mutex_);
  all.by_window_[win] = std::move(directories);
  open_count.store(all.by_window_.size(), std::memory_order_relaxed);
}

void attached_ranges::add(const window& memory) {
  const range now{address_of(memory.base()), static_cast<MPI_Aint>(memory.size()), address_of(memory.exposed())};
  HPE_REQUIRE(
      replace({}, now), HPE_ERROR_NOT_SUPPORTED,
      "{} ranges of device memory are attached to the dynamic window, and more are not possible; detach one, or "
      "attach fewer and larger ranges",
      most);
}

void attached_ranges::remove(const window& memory) {
  replace({address_of(memory.base()), static_cast<MPI_Aint>(memory.size()), address_of(memory.exposed())}, {});
}

bool attached_ranges::replace(const range& before, const range& now) {
  const lock_guard lock(mutex_);
  HPE_REAL(Win_lock)(MPI_LOCK_EXCLUSIVE, rank_, 0, directories_);
  const auto found = std::find(own_->begin(), own_->end(), before);
  const bool any = found != own_->end();
  if (any) *found = now;
  HPE_REAL(Win_unlock)(rank_, directories_);
  return any;
}

MPI_Aint attached_ranges::find_place(MPI_Win win, int target, MPI_Aint displacement) {
  const auto its = find(win);
  return its != nullptr ? its->place(target, displacement) : displacement;
}

MPI_Aint attached_ranges::place(int target, MPI_Aint address) {
  if (target < 0 || target >= ranks_) return address;  // MPI_PROC_NULL, or an error that MPI reports
  directory of_target;
  constexpr int bytes = sizeof of_target;
  const MPI_Datatype byte = handles::get().byte;
  {
    const lock_guard lock(mutex_);
    HPE_REAL(Win_lock)(MPI_LOCK_SHARED, target, 0, directories_);
    HPE_REAL(Get)(&of_target, bytes, byte, target, MPI_Aint{0}, bytes, byte, directories_);
    HPE_REAL(Win_unlock)(target, directories_);
  }
  for (const range& r : of_target)
    if (address >= r.begin && address - r.begin < r.bytes) return r.copy + (address - r.begin);
  return address;
}

}  // namespace hpe::interpose::mpi
