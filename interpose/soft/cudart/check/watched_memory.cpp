// The pages belong only to the program: hpe accesses pinned memory and managed memory by another mapping, and
// registered memory, which it moves to its own pages, by their address for kernels. So all touches are the program's.

#include "interpose/soft/cudart/check/watched_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "hpe/check.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/own_pages.h"
#include "runtime/base/log.h"
#include "runtime/check/touch_log.h"
#include "runtime/check/watched_pages.h"

namespace hpe::cudart {

namespace {

using check::watched_pages;

/// A range of pages in use by work. Later work of the same stream replaces earlier work.
struct memory_in_use {
  std::uintptr_t begin = 0, end = 0;
  bool is_written = false;
  check::past_ptr work;
};

/// The pages that the thread with this number opens for one access.
struct open_pages {
  std::atomic<::pid_t> thread{0};
  std::array<std::uintptr_t, 4> pages{};
  std::size_t count = 0;
};

// The objects exist until the process ends, because signal handlers use them.
struct watching {
  watched_pages pages;
  check::touch_log touches;
  bool can_step = false;
  std::array<open_pages, 256> steps{};
  std::mutex mutex;
  std::vector<memory_in_use> in_use;  // with the mutex
  bool has_told = false;              // with the mutex
};
watching* all = nullptr;

open_pages* step_of(::pid_t thread, bool makes) noexcept {
  const auto find = [](::pid_t wanted) {
    return std::find_if(all->steps.begin(), all->steps.end(),
                        [&](const open_pages& each) { return each.thread == wanted; });
  };
  if (const auto found = find(thread); found != all->steps.end()) return &*found;
  if (!makes) return nullptr;
  for (open_pages& each : all->steps) {
    ::pid_t none = 0;
    if (!each.thread.compare_exchange_strong(none, thread)) continue;
    each.count = 0;
    return &each;
  }
  return nullptr;
}

hpeTouchAnswer on_fault(const hpeTouch* touch) {
  const auto fault = reinterpret_cast<std::uintptr_t>(touch->fault);
  switch (all->pages.touched(fault, touch->writes)) {
    case watched_pages::answer::not_watched: return HPE_TOUCH_NOT_WATCHED;
    case watched_pages::answer::opened: return HPE_TOUCH_REPEAT;
    case watched_pages::answer::touched: break;
  }
  open_pages* step = step_of(::gettid(), false);
  // The second page of an access belongs to the same touch.
  if (step == nullptr) all->touches.add(touch->begin, touch->begin + touch->bytes, touch->writes, touch->instruction);
  if (!all->can_step || all->pages.is_tired(fault)) return HPE_TOUCH_REPEAT;
  if (step == nullptr) step = step_of(::gettid(), true);
  if (step == nullptr || step->count == step->pages.size()) return HPE_TOUCH_REPEAT;
  step->pages[step->count++] = fault;
  return HPE_TOUCH_STEP;
}

void on_step() {
  open_pages* const step = step_of(::gettid(), false);
  if (step == nullptr) return;
  for (std::size_t n = 0; n < step->count; ++n) all->pages.close(step->pages[n]);
  step->thread.store(0);
}

bool on_protect(void* begin, std::size_t bytes, int allowed, bool* failed) {
  constexpr std::array levels{os::page_protection::none, os::page_protection::read, os::page_protection::read_write};
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return all->pages.allow(first, first + bytes, levels[static_cast<std::size_t>(allowed)], *failed);
}

void on_call(const void* begin, std::size_t bytes, bool writes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  if (all->pages.is_in_use(first, first + bytes)) all->touches.add(first, first + bytes, writes, nullptr);
}

bool on_refusal() { return all->pages.open_all(); }

/// The memory that the program uses at its own addresses, if pages of this memory can be watched.
std::optional<cudart_allocation> host_memory_at(const void* address) {
  const auto found = process().memory().find(address);
  if (!found || !(found->is_managed() || !found->is_on_device())) return std::nullopt;
  const bool is_registered = found->kind == allocation_kind::registered;
  if (is_registered && (found->device_base == found->base || !has_own_pages(*found))) return std::nullopt;
  return found;
}

// Requires the mutex.
void watch_range(std::uintptr_t begin, std::size_t bytes, bool is_written, bool has_protocol,
                 const check::past_ptr& work) {
  const memory_in_use made{begin, begin + bytes, is_written, work};
  const auto same = std::find_if(all->in_use.begin(), all->in_use.end(), [&](const memory_in_use& each) {
    return each.begin == made.begin && each.end == made.end && each.is_written == is_written &&
           each.work->self.line == work->self.line;
  });
  if (same != all->in_use.end()) {
    same->work = work;
    all->pages.add_again(made.begin, made.end);
    return;
  }
  if (all->pages.add(made.begin, made.end, is_written, has_protocol)) {
    all->in_use.push_back(made);
  } else if (!std::exchange(all->has_told, true)) {
    log(log_level::warn,
        "HPE_CHECK: not all CPU code that touches memory of queued work is seen: there is too much memory");
  }
}

}  // namespace

void start_watching() {
  all = new watching;
  all->touches.prepare();
  const hpeTouchWatcher functions{on_fault, on_step, on_protect, on_call, on_refusal};
  check(::hpeWatchTouches(&functions, &all->can_step));
}

void watch(const task_memory_uses& uses, const check::past_ptr& work) {
  trace::call_stack::prepare();
  for (const hpeAccess& each : uses.ranges) {
    auto begin = reinterpret_cast<std::uintptr_t>(each.address);
    std::size_t bytes = each.size;
    if (const auto behind = registered_behind(begin)) {
      begin = reinterpret_cast<std::uintptr_t>(behind->base);
      bytes = behind->size;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
    const auto found = host_memory_at(reinterpret_cast<const void*>(begin));
    if (!found || bytes == 0) continue;
    const std::lock_guard lock(all->mutex);
    watch_range(begin, bytes, each.mode != HPE_IN, found->is_managed(), work);
  }
}

void end_watches(bool also_unfinished) {
  const std::lock_guard lock(all->mutex);
  std::erase_if(all->in_use, [&](const memory_in_use& each) {
    if (!also_unfinished && !checker()->has_waited(each.work)) return false;
    all->pages.remove(each.begin, each.end, each.is_written);
    return true;
  });
  if (all->pages.has_missed_touches() && !std::exchange(all->has_told, true))
    log(log_level::warn,
        "HPE_CHECK: CPU code touches memory of queued work very often; from now on, only the first touch of each page "
        "is seen");
}

std::vector<check::host_touch> take_touches() { return all->touches.take(); }

void forget_pages(const cudart_allocation& gone) {
  const auto begin = reinterpret_cast<std::uintptr_t>(gone.base);
  all->pages.forget(begin, begin + gone.size);
}

std::optional<cudart_allocation> registered_behind(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  const auto found = process().memory().find(reinterpret_cast<const void*>(address));
  return found && found->registered != nullptr ? process().memory().find(found->registered) : std::nullopt;
}

}  // namespace hpe::cudart
