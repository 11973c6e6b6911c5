#include "interpose/soft/cudart/stream/checked_work.h"

#include <atomic>
#include <utility>

#include "interpose/soft/cudart/device/thread_state.h"

namespace hpe::cudart {

namespace {

std::atomic<check::checker*> only{nullptr};
work_watcher watches{};
constinit thread_local running_work* runs = nullptr;  // the work of the work_in_progress of this thread

// Whether the calling thread runs work that the checker knows.
bool is_checked_work() noexcept { return runs != nullptr && runs->work != nullptr; }

}  // namespace

check::checker* checker() noexcept { return only.load(std::memory_order_acquire); }
void set_checker(check::checker* made, const work_watcher& watcher) noexcept {
  watches = watcher;
  only.store(made, std::memory_order_release);
}

std::shared_ptr<const check::call_place> place_of_call() {
  if (checker() == nullptr) return nullptr;
  return std::make_shared<const check::call_place>(check::call_place::here(this_thread().call));
}

const running_work* this_threads_work() noexcept { return runs; }

void set_step(const std::shared_ptr<const check::step_order>& steps, std::size_t step) noexcept {
  if (runs == nullptr) return;
  runs->steps = steps;
  runs->step = step;
}

work_in_progress::work_in_progress(std::shared_ptr<const check::checked_work> work) noexcept
    : work_{std::move(work), nullptr, 0} {
  runs = &work_;
}

work_in_progress::~work_in_progress() { runs = nullptr; }

check::operation_run run_of(check::operation_ptr what) {
  if (runs == nullptr) return {std::move(what), nullptr};
  return {std::move(what), runs->work, runs->steps, runs->step};
}

void add_accesses(const check::operation_ptr& what, std::span<const check::access_range> ranges,
                  std::span<const std::uint64_t> fresh) {
  if (check::checker* const to = checker(); to != nullptr && what != nullptr && is_checked_work())
    to->add(run_of(what), ranges, fresh);
}

void add_races(const check::operation_ptr& what, std::span<const check::launch_race> races) {
  if (check::checker* const to = checker(); to != nullptr && what != nullptr && is_checked_work())
    to->add(run_of(what), races);
}

bool fill_fresh_memory(void* base, std::size_t bytes) {
  return watches.fill_fresh != nullptr && watches.fill_fresh(base, bytes);
}

void tell_queued(const task_memory_uses& uses, const check::past_ptr& work) {
  if (watches.queued != nullptr) watches.queued(uses, work);
}

void tell_host_function(bool begins) {
  check::checker* const to = checker();
  if (to == nullptr || !is_checked_work()) return;
  begins ? to->begin_host_function(run_of(nullptr)) : to->end_host_function();
  if (watches.waited != nullptr) watches.waited();
}

void tell_values(std::span<const check::past_ptr> writers) {
  if (checker() != nullptr && is_checked_work() && runs->steps == nullptr)
    checker()->end_value_wait(*runs->work, writers);
}

void tell_unknown_order(const char* how) {
  if (check::checker* const to = checker(); to != nullptr) to->shared().set_unknown(how);
}

void tell_wait(const check::past_ptr& ended) {
  if (check::checker* const to = checker(); to != nullptr && ended != nullptr) {
    to->wait(ended);
    if (watches.waited != nullptr) watches.waited();
  }
}

}  // namespace hpe::cudart
