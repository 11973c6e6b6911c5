// The pages belong only to the program: hpe accesses pinned memory and managed memory by another mapping, and
// registered memory, which it moves to its own pages, by their address for kernels. So all touches are those of the
// program and of MPI's library, which take_touches() leaves out.

#include "interpose/soft/cudart/check/watched_memory.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <tuple>
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
  bool is_of_message = false;
  bool is_closed = true;  // otherwise a thread is in a function of MPI
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
  std::atomic<bool> has_messages{false};
};
watching* all = nullptr;             // before checker()
std::atomic<int> threads_in_mpi{0};  // changed with the mutex, as soon as there is one

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
void close(memory_in_use& range, bool has_protocol = false) {
  range.is_closed = all->pages.add(range.begin, range.end, range.is_written, has_protocol);
  if (!range.is_closed && !std::exchange(all->has_told, true))
    log(log_level::warn,
        "HPE_CHECK: not all CPU code that touches memory of queued work is seen: there is too much memory");
}

// Requires the mutex.
void open(memory_in_use& range) {
  if (std::exchange(range.is_closed, false)) all->pages.remove(range.begin, range.end, range.is_written);
}

bool is_in(const char* file) {
  static constexpr std::array<const char*, 3> libraries{"/libmpi", "/libopen-", "/libmpich"};
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const char* name) { return std::strstr(file, name) != nullptr; });
}

// Whether MPI's own code makes a touch.
bool is_by_mpi(const check::host_touch& touch) {
  const trace::call_stack& stack = touch.stack;
  return std::any_of(stack.frames.begin(), stack.frames.begin() + stack.count, [](void* frame) {
    Dl_info about{};
    return ::dladdr(frame, &about) != 0 && about.dli_fname != nullptr && is_in(about.dli_fname);
  });
}

// Requires the mutex.
void watch_range(std::uintptr_t begin, std::size_t bytes, bool is_written, bool has_protocol,
                 const check::past_ptr& work) {
  memory_in_use made{begin, begin + bytes, is_written, work};
  const auto same = std::find_if(all->in_use.begin(), all->in_use.end(), [&](const memory_in_use& each) {
    return each.begin == made.begin && each.end == made.end && each.is_written == is_written &&
           each.work->self.line == work->self.line;
  });
  if (same != all->in_use.end()) {
    same->work = work;
    all->pages.add_again(made.begin, made.end);
    return;
  }
  close(made, has_protocol);
  if (made.is_closed) all->in_use.push_back(made);
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

void watch_message(const void* first, std::size_t bytes, bool is_written, const check::past_ptr& work) {
  const auto* begin = static_cast<const std::byte*>(first);
  const std::byte* end = begin + bytes;
  const auto number = [](const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); };
  const bool is_ordinary = !process().memory().find_also_of_hpe(first);
  const auto found = host_memory_at(first);
  const std::lock_guard lock(all->mutex);
  all->has_messages.store(true);
  std::erase_if(all->in_use, [&](memory_in_use& each) {
    const bool conflicts = each.begin < number(end) && each.end > number(begin) && (is_written || each.is_written);
    if (!conflicts || each.is_of_message) return false;
    open(each);
    return true;
  });
  if (is_ordinary) std::tie(begin, end) = pages_within(begin, end);
  if (begin < end && (is_ordinary || (found && !found->is_managed())))
    all->in_use.push_back({number(begin), number(end), is_written, work, true, false});
}

std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end) {
  constexpr std::uintptr_t page = watched_pages::page_bytes;
  const auto number = reinterpret_cast<std::uintptr_t>(begin);
  const std::byte* const first = begin + ((number + page - 1) / page * page - number);
  const std::byte* const last = end - (reinterpret_cast<std::uintptr_t>(end) % page);
  return first < last ? std::pair(first, last) : std::pair(end, end);
}

void enter_messages() noexcept {
  if (checker() == nullptr) {
    ++threads_in_mpi;
    return;
  }
  const std::lock_guard lock(all->mutex);
  if (++threads_in_mpi != 1) return;
  for (memory_in_use& each : all->in_use)
    if (each.is_of_message) open(each);
}

void leave_messages() noexcept {
  if (checker() == nullptr) {
    --threads_in_mpi;
    return;
  }
  const std::lock_guard lock(all->mutex);
  if (--threads_in_mpi != 0) return;
  for (memory_in_use& each : all->in_use)
    if (each.is_of_message) close(each);
}

void end_watches(bool also_unfinished) {
  const std::lock_guard lock(all->mutex);
  std::erase_if(all->in_use, [&](memory_in_use& each) {
    if (!also_unfinished && !checker()->has_waited(each.work)) return false;
    open(each);
    if (each.is_of_message) all->pages.forget(each.begin, each.end);  // ordinary memory may be unmapped
    return true;
  });
  if (all->pages.has_missed_touches() && !std::exchange(all->has_told, true))
    log(log_level::warn,
        "HPE_CHECK: CPU code touches memory of queued work very often; from now on, only the first touch of each page "
        "is seen");
}

std::vector<check::host_touch> take_touches() {
  std::vector<check::host_touch> touches = all->touches.take();
  if (all->has_messages.load()) std::erase_if(touches, is_by_mpi);
  return touches;
}

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
