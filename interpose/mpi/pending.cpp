#include "interpose/mpi/pending.h"

#include <algorithm>
#include <utility>

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

int staged_pending::begin() {
  const lock_guard lock(mutex_);
  try {
    for (staged_buffer& b : buffers_) b.refresh();
  } catch (const error& e) {
    return raise(object_, e);
  }
  active_ = true;
  return MPI_SUCCESS;
}

int staged_pending::finish(const MPI_Status* status) {
  const lock_guard lock(mutex_);
  if (!std::exchange(active_, false)) return MPI_SUCCESS;
  int result = MPI_SUCCESS;
  try {
    if (failure_) throw *failure_;
    if (received_ && status != nullptr && was_cancelled(*status)) {
      if (!persistent) buffers_.clear();
      return MPI_SUCCESS;
    }
    for (staged_buffer& b : buffers_) {
      const std::size_t bytes = received_ && status != nullptr ? bytes_received(*status) : b.size();
      if (bytes <= b.size()) b.written(bytes);
    }
  } catch (const error& e) {
    result = raise(object_, e);
  }
  if (!persistent) buffers_.clear();
  return result;
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

void staged_pending::forget(MPI_Comm comm) {
  const lock_guard lock(mutex_);
  if (object_ == mpi_object(on_comm{comm})) object_ = no_object{};
}

pending_table& pending_table::all() {
  static auto* const table = new pending_table;
  return *table;
}

void pending_table::add(MPI_Request request, std::shared_ptr<pending> operation) {
  const lock_guard lock(mutex_);
  by_request_[request] = std::move(operation);
  count_.store(by_request_.size(), std::memory_order_relaxed);
}

std::shared_ptr<pending> pending_table::find(MPI_Request request) {
  if (empty()) return nullptr;
  const lock_guard lock(mutex_);
  const auto found = by_request_.find(request);
  return found != by_request_.end() ? found->second : nullptr;
}

void pending_table::remove(MPI_Request request, const std::shared_ptr<pending>& operation) {
  const lock_guard lock(mutex_);
  const auto found = by_request_.find(request);
  if (found != by_request_.end() && found->second == operation) by_request_.erase(found);
  count_.store(by_request_.size(), std::memory_order_relaxed);
}

std::shared_ptr<pending> pending_table::take(MPI_Request request) {
  if (empty()) return nullptr;
  const lock_guard lock(mutex_);
  const auto found = by_request_.find(request);
  if (found == by_request_.end()) return nullptr;
  std::shared_ptr<pending> operation = found->second;
  if (!operation->persistent) {
    by_request_.erase(found);
    count_.store(by_request_.size(), std::memory_order_relaxed);
  }
  return operation;
}

void pending_table::move(MPI_Request from, MPI_Request to, const std::shared_ptr<pending>& operation) {
  if (from == to) return;
  remove(from, operation);
  add(to, operation);
}

void pending_table::abandon(MPI_Request request, std::shared_ptr<pending> operation) {
  remove(request, operation);
  const lock_guard lock(mutex_);
  abandoned_.emplace_back(request, std::move(operation));
  abandoned_count_.store(abandoned_.size(), std::memory_order_relaxed);
}

void pending_table::look_at_abandoned() {
  // This thread may call this function again, from an error handler of the program; the list is then empty.
  const std::lock_guard alone(looking_);
  // Move the list out of the table first, because the thread must not hold the mutex while it calls MPI.
  std::vector<std::pair<MPI_Request, std::shared_ptr<pending>>> mine;
  {
    const lock_guard lock(mutex_);
    mine.swap(abandoned_);
  }
  std::erase_if(mine, [](auto& entry) {
    entry.second->await_arrived();
    MPI_Status status;
    if (!is_complete(entry.first, status)) return false;
    entry.second->finish(&status);
    HPE_REAL(Request_free)(&entry.first);
    return true;
  });
  const lock_guard lock(mutex_);
  abandoned_.insert(abandoned_.end(), std::make_move_iterator(mine.begin()), std::make_move_iterator(mine.end()));
  abandoned_count_.store(abandoned_.size(), std::memory_order_relaxed);
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

void pending_table::forget(MPI_Comm comm) {
  // Operations are called without the mutex, because they take mutexes that other threads hold while they use the
  // table.
  std::vector<std::shared_ptr<pending>> all;
  {
    const lock_guard lock(mutex_);
    for (const auto& [request, operation] : by_request_) all.push_back(operation);
    for (const auto& [request, operation] : abandoned_) all.push_back(operation);
  }
  for (const auto& operation : all) operation->forget(comm);
}

}  // namespace hpe::interpose::mpi
