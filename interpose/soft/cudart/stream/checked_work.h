#pragma once

/// The connection of streams, events and graphs with the checker of `hpe run --check` (runtime/check). Without the
/// option, checker() is null, and nothing is recorded.

#include <cstddef>
#include <memory>
#include <span>

#include "interpose/soft/cudart/stream/stream_task.h"
#include "runtime/check/checker.h"

namespace hpe::cudart {

/// Returns the checker of this process; null if the program is not checked.
[[nodiscard]] check::checker* checker() noexcept;
/// What the checker needs to know of memory and of waits.
struct work_watcher {
  /// Fills memory that has just been allocated; returns false if it does not.
  bool (*fill_fresh)(void* base, std::size_t bytes);
  void (*queued)(const task_memory_uses& uses, const check::past_ptr& work);  ///< work has been queued
  void (*waited)();                                                           ///< CPU code has waited for work
};
/// Call this once, before the first stream is created. The checker must exist until the process ends.
void set_checker(check::checker* made, const work_watcher& watcher) noexcept;

/// Returns the place where the program calls the CUDA function in progress; null if the program is not checked.
[[nodiscard]] std::shared_ptr<const check::call_place> place_of_call();

/// The work that the calling thread of a stream runs. Steps and step are set while a graph runs.
struct running_work {
  std::shared_ptr<const check::checked_work> work;
  std::shared_ptr<const check::step_order> steps;
  std::size_t step = 0;
};
/// Returns the work that the calling thread runs; null if it runs none. Allocates nothing, so no call fails because
/// memory is short.
[[nodiscard]] const running_work* this_threads_work() noexcept;
/// Notes the step of a graph that the calling thread begins. Does nothing if the thread runs no work.
void set_step(const std::shared_ptr<const check::step_order>& steps, std::size_t step) noexcept;

/// While an object of this class exists, the thread that has created it runs this work.
class work_in_progress {
 public:
  explicit work_in_progress(std::shared_ptr<const check::checked_work> work) noexcept;
  ~work_in_progress();
  work_in_progress(const work_in_progress&) = delete;
  work_in_progress& operator=(const work_in_progress&) = delete;

 private:
  running_work work_;
};

/// Adds the accesses of an operation to the work that the calling thread runs. Does nothing if the program is not
/// checked or the thread runs no work of a stream.
void add_accesses(const check::operation_ptr& what, std::span<const check::access_range> ranges,
                  std::span<const std::uint64_t> fresh = {});
/// Like add_accesses, for races within a launch.
void add_races(const check::operation_ptr& what, std::span<const check::launch_race> races);
/// Returns the run of the operation as part of the work that the calling thread runs.
[[nodiscard]] check::operation_run run_of(check::operation_ptr what);

/// See work_watcher. Returns false if the program is not checked.
[[nodiscard]] bool fill_fresh_memory(void* base, std::size_t bytes);
/// Tells the watcher that work has been queued.
void tell_queued(const task_memory_uses& uses, const check::past_ptr& work);
/// Tells the checker that the calling thread begins, or ends, a host function.
void tell_host_function(bool begins);
/// Tells the checker that the work which the calling thread runs has seen the values for which it has waited.
/// `writers`: the work that has written the values; empty if hpe does not know this work. Does nothing in a graph.
void tell_values(std::span<const check::past_ptr> writers);
/// Tells the checker that the program can order work of several processes in a way that hpe does not see: see
/// shared_memories::set_unknown().
void tell_unknown_order(const char* how);
/// Tells the checker that CPU code has waited for some work.
void tell_wait(const check::past_ptr& ended);

}  // namespace hpe::cudart
