#include "interpose/mpi/pending.h"

#include <algorithm>
#include <utility>

#include "interpose/mpi/messages/message_progress.h"

namespace hpe::interpose::mpi {

std::size_t bytes_received(const MPI_Status& status) {
  MPI_Count bytes = 0;
  HPE_REAL(Get_elements_x)(&status, handles::get().byte, &bytes);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

namespace {

bool was_cancelled(const MPI_Status& status) {
  int flag = 0;
  HPE_REAL(Test_cancelled)(&status, &flag);
  return flag != 0;
}

}  // namespace

bool is_complete(MPI_Request request, MPI_Status& status) {
  int flag = 0;
  return HPE_REAL(Request_get_status)(request, &flag, &status) == MPI_SUCCESS && flag != 0;
}

bool pending::uses(MPI_Comm comm) const { return object() == mpi_object(on_comm{comm}); }

void pending::forget(MPI_Comm comm) {
  const lock_guard lock(object_mutex_);
  if (object_ == mpi_object(on_comm{comm})) object_ = no_object{};
}

mpi_object pending::object() const {
  const lock_guard lock(object_mutex_);
  return object_;
}

int staged_pending::begin() {
  const lock_guard lock(mutex_);
  try {
    for (staged_buffer& b : buffers_) b.refresh();
  } catch (const error& e) {
    return raise(object(), e);
  }
  active_ = true;
  return MPI_SUCCESS;
}

int staged_pending::finish(const MPI_Status* status) {
  try {
    const lock_guard lock(mutex_);
    if (!std::exchange(active_, false)) return MPI_SUCCESS;
    copy_back(status);
  } catch (const error& e) {
    return raise(object(), e);  // without the mutex, because an error handler of the program may free the communicator
  }
  return MPI_SUCCESS;
}

void staged_pending::copy_back(const MPI_Status* status) {
  // The buffers of an operation that is not persistent end with this function.
  std::vector<staged_buffer> ending;
  if (!persistent) ending.swap(buffers_);
  if (failure_) throw *failure_;
  if (received_ && status != nullptr && was_cancelled(*status)) return;
  for (staged_buffer& b : persistent ? buffers_ : ending) {
    const std::size_t bytes = received_ && status != nullptr ? bytes_received(*status) : b.size();
    if (bytes <= b.size()) b.written(bytes);
  }
}

void staged_pending::drop() noexcept {
  const lock_guard lock(mutex_);
  active_ = false;
  if (!persistent) buffers_.clear();
}

bool staged_pending::known_when_complete() const {
  const lock_guard lock(mutex_);
  return !failure_ &&
         (received_ || std::none_of(buffers_.begin(), buffers_.end(), [](const auto& b) { return b.is_written(); }));
}

bool staged_pending::active() {
  const lock_guard lock(mutex_);
  return active_;
}

pending_table& pending_table::all() {
  static auto* const table = new pending_table;
  return *table;
}

pending_table::entries::iterator pending_table::find_untaken(MPI_Request request) {
  const auto [begin, end] = by_request_.equal_range(request);
  const auto found = std::find_if(begin, end, [](const auto& each) { return !each.second.taken; });
  return found == end ? by_request_.end() : found;
}

pending_table::entries::iterator pending_table::find_entry(MPI_Request request,
                                                           const std::shared_ptr<pending>& operation) {
  const auto [begin, end] = by_request_.equal_range(request);
  const auto found = std::find_if(begin, end, [&](const auto& each) { return each.second.operation == operation; });
  return found == end ? by_request_.end() : found;
}

void pending_table::add(MPI_Request request, std::shared_ptr<pending> operation) {
  const lock_guard lock(mutex_);
  if (const auto found = find_untaken(request); found != by_request_.end())
    found->second.operation = std::move(operation);
  else
    by_request_.emplace(request, entry{std::move(operation)});
  count_.store(by_request_.size(), std::memory_order_relaxed);
}

std::shared_ptr<pending> pending_table::find(MPI_Request request) {
  if (empty()) return nullptr;
  const lock_guard lock(mutex_);
  const auto found = find_untaken(request);
  return found != by_request_.end() ? found->second.operation : nullptr;
}

void pending_table::remove(MPI_Request request, const std::shared_ptr<pending>& operation) {
  const lock_guard lock(mutex_);
  if (const auto found = find_entry(request, operation); found != by_request_.end()) by_request_.erase(found);
  count_.store(by_request_.size(), std::memory_order_relaxed);
}

std::shared_ptr<pending> pending_table::take(MPI_Request request) {
  if (empty()) return nullptr;
  const lock_guard lock(mutex_);
  const auto found = find_untaken(request);
  if (found == by_request_.end()) return nullptr;
  found->second.taken = !found->second.operation->persistent;
  return found->second.operation;
}

void pending_table::put_back(MPI_Request request, const std::shared_ptr<pending>& operation) {
  const lock_guard lock(mutex_);
  if (const auto found = find_entry(request, operation); found != by_request_.end()) found->second.taken = false;
}

void pending_table::move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation) {
  if (from == to) return;
  remove(from, operation);
  add(to, operation);
}

void pending_table::abandon(MPI_Request request, std::shared_ptr<pending> operation) {
  remove(request, operation);
  const lock_guard lock(mutex_);
  abandoned_.push_back(std::make_shared<abandoned>(abandoned{request, std::move(operation)}));
  count_freed();
}

void pending_table::count_freed() { freed_count_.store(abandoned_.size() + kept_.size(), std::memory_order_relaxed); }

// Open MPI and MPICH free a communicator without messages to other ranks, so ranks may free it at different times.
// MPI may free the communicator although an operation uses it: the operation starts messages on the communicator that
// MPI does not know of, or is in a list of hpe with the communicator's handle.
bool pending_table::keep(MPI_Comm comm) {
  if (empty() && !any_freed()) return false;
  kept_communicator kept{comm, {}};
  for (const auto& operation : users_of(comm)) kept.users.emplace_back(operation);
  if (kept.users.empty()) return false;
  const lock_guard lock(mutex_);
  kept_.push_back(std::move(kept));
  count_freed();
  return true;
}

// hpe's own messages of a collective call begin and end in wrappers, which call this function during a turn of class
// progress. An operation for which look_at_abandoned() waits could not end then, and another thread that looks at
// abandoned operations may wait for the end of this turn.
void pending_table::look_at_freed() {
  if (progress::guard::is_held()) return;
  look_at_abandoned();
  free_communicators([](const kept_communicator& each) {
    return std::all_of(each.users.begin(), each.users.end(), [](const auto& user) { return user.expired(); });
  });
}

void pending_table::free_communicators() {
  free_communicators([](const kept_communicator&) { return true; });
}

// Calls MPI without the mutex, because MPI calls the program's functions that delete attributes.
template <class Condition>
void pending_table::free_communicators(Condition&& may_free) {
  std::vector<MPI_Comm> free;
  {
    const lock_guard lock(mutex_);
    std::erase_if(kept_, [&](const kept_communicator& each) {
      if (!may_free(each)) return false;
      free.push_back(each.comm);
      return true;
    });
    count_freed();
  }
  for (MPI_Comm& comm : free) HPE_REAL(Comm_free)(&comm);
}

// An operation remains in the table until finish() has returned, for forget(). Its request is freed before finish(),
// because an error handler of the program may call MPI_Comm_disconnect, in which MPICH waits for all requests.
void pending_table::look_at_abandoned() {
  const std::lock_guard alone(looking_);
  std::vector<std::shared_ptr<abandoned>> all;
  {
    const lock_guard lock(mutex_);
    all = abandoned_;
  }
  for (const auto& each : all) {
    if (each->now != abandoned::phase::waits) continue;
    each->operation->await_arrived();
    MPI_Status status;
    if (!is_complete(each->request, status)) continue;
    each->now = abandoned::phase::ends;
    HPE_REAL(Request_free)(&each->request);
    each->operation->finish(&status);
    each->now = abandoned::phase::over;
  }
  const lock_guard lock(mutex_);
  std::erase_if(abandoned_, [](const auto& each) { return each->now == abandoned::phase::over; });
  count_freed();
}

void pending_table::add(MPI_Win win, int target, std::shared_ptr<pending> operation) {
  const lock_guard lock(mutex_);
  one_sided_.push_back({win, target, std::move(operation)});
}

int pending_table::finish(MPI_Win win, int target) {
  std::vector<std::shared_ptr<pending>> finished;
  {
    const lock_guard lock(mutex_);
    std::erase_if(one_sided_, [&](one_sided& o) {
      if (o.win != win || (target >= 0 && o.target != target)) return false;
      finished.push_back(std::move(o.operation));
      return true;
    });
  }
  int result = MPI_SUCCESS;
  for (const auto& operation : finished) {
    const int its = operation->finish(nullptr);
    if (result == MPI_SUCCESS) result = its;
  }
  return result;
}

void pending_table::drop(MPI_Win win) {
  const lock_guard lock(mutex_);
  std::erase_if(one_sided_, [&](const one_sided& o) { return o.win == win; });
}

std::vector<std::shared_ptr<pending>> pending_table::users_of(MPI_Comm comm) {
  std::vector<std::shared_ptr<pending>> all;
  const lock_guard lock(mutex_);
  for (const auto& [request, its] : by_request_)
    if (its.operation->uses(comm)) all.push_back(its.operation);
  for (const auto& each : abandoned_)
    if (each->operation->uses(comm)) all.push_back(each->operation);
  return all;
}

// Operations are called without the mutex, because they take mutexes that other threads hold while they use the table.
bool pending_table::any_active(MPI_Comm comm) {
  const auto users = users_of(comm);
  const auto is_freed = [this](const auto& operation) {
    const lock_guard lock(mutex_);
    return std::any_of(abandoned_.begin(), abandoned_.end(),
                       [&](const auto& each) { return each->operation == operation; });
  };
  return std::any_of(users.begin(), users.end(), [&](const auto& operation) {
    return (operation->starts_itself() || is_freed(operation)) && operation->active();
  });
}

void pending_table::forget(MPI_Comm comm) {
  for (const auto& operation : users_of(comm)) operation->forget(comm);
}

}  // namespace hpe::interpose::mpi
