#include "interpose/gpu/work/deferred_copies.h"

#include <algorithm>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

bool deferred_copies::add(const std::shared_ptr<interpose::copy_queue>& queue, const copy_ranges& uses) {
  const lock_guard lock(mutex_);
  const bool is_first = copies_.empty();
  try {
    if (std::ranges::find(queues_, queue) == queues_.end()) queues_.push_back(queue);
    copies_.push_back({uses, queue.get()});
  } catch (const std::bad_alloc&) {
    queue->wait();
    return false;
  }
  call_watch::begin(call_watch::copies_deferred);
  if (copies_.size() == most || !are_allowed()) finish_locked();
  return is_first;
}

void deferred_copies::finish() {
  const lock_guard lock(mutex_);
  finish_locked();
}

void deferred_copies::finish_before(const used_range& use, const interpose::copy_queue* after) {
  if (!any()) return;
  const lock_guard lock(mutex_);
  if (std::ranges::any_of(copies_, [&](const deferred& c) { return c.queue != after && conflict(c.uses, use); }))
    finish_locked();
}

void deferred_copies::finish_or_tell(const char* what) noexcept {
  if (!any()) return;
  try {
    finish();
  } catch (const std::exception& e) {
    log(log_level::warn, "waiting for copies before {}: {}", what, e.what());
  }
}

void deferred_copies::finish_locked() {
  std::optional<error> failure;
  for (const auto& queue : queues_) try {
      queue->wait();
    } catch (const error& e) {
      if (!failure) failure = e;
    }
  queues_.clear();
  copies_.clear();
  call_watch::end(call_watch::copies_deferred);
  if (failure) throw error(*failure);
}

}  // namespace hpe::cuda_hooks
