// The pages belong only to the program, and hpe and devices access them by another mapping or by their physical
// addresses. So all touches are those of the program, of MPI's library, which take_touches() leaves out, and of the
// driver, which the log leaves out.

#include "runtime/check/host_watch.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/log.h"

namespace hpe::check {

constinit std::atomic<host_watch*> host_watch::the_instance{nullptr};
constinit std::atomic<int> host_watch::threads_in_mpi{0};

namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Whether MPI's own code makes a touch.
bool is_by_mpi(const host_touch& touch) {
  static constexpr std::array<const char*, 3> libraries{"/libmpi", "/libopen-", "/libmpich"};
  const trace::call_stack& stack = touch.stack;
  return std::any_of(stack.frames.begin(), stack.frames.begin() + stack.count, [](void* frame) {
    Dl_info about{};
    return ::dladdr(frame, &about) != 0 && about.dli_fname != nullptr &&
           std::ranges::any_of(libraries,
                               [&](const char* name) { return std::strstr(about.dli_fname, name) != nullptr; });
  });
}

}  // namespace

host_watch* host_watch::of_process() noexcept { return the_instance.load(std::memory_order_acquire); }

hpeStatus host_watch::start(hpeStatus (*show_touches)(const hpeTouchWatcher* watcher, bool* can_step)) {
  auto* const made = new host_watch;
  made->touches_.prepare();
  the_instance.store(made, std::memory_order_release);
  static constexpr hpeTouchWatcher functions{on_fault, on_step, on_protect, on_call, on_refusal, on_pass};
  const hpeStatus status = show_touches(&functions, &made->can_step_);
  made->sees_touches_.store(status == HPE_SUCCESS);
  return status;
}

void host_watch::leave_out(const void* function_of_library) { touches_.leave_out(function_of_library); }

// ---- in signal handlers, and in functions of libc

host_watch::open_pages* host_watch::step_of(::pid_t thread, bool makes) noexcept {
  const auto its = [&](const open_pages& each) { return each.thread == thread; };
  if (auto* const found = std::ranges::find_if(steps_, its); found != steps_.end()) return found;
  if (!makes) return nullptr;
  for (open_pages& each : steps_) {
    ::pid_t none = 0;
    if (!each.thread.compare_exchange_strong(none, thread)) continue;
    each.count = 0;
    return &each;
  }
  return nullptr;
}

hpeTouchAnswer host_watch::on_fault(const hpeTouch* touch) {
  host_watch& all = *of_process();
  const std::uintptr_t fault = number(touch->fault);
  switch (all.pages_.touched(fault, touch->writes)) {
    case watched_pages::answer::not_watched: return HPE_TOUCH_NOT_WATCHED;
    case watched_pages::answer::opened: return HPE_TOUCH_REPEAT;
    case watched_pages::answer::touched: break;
  }
  open_pages* step = all.step_of(::gettid(), false);
  // The second page of an access belongs to the same touch.
  if (step == nullptr) all.touches_.add(touch->begin, touch->begin + touch->bytes, touch->writes, touch->instruction);
  if (!all.can_step_ || all.pages_.is_tired(fault)) return HPE_TOUCH_REPEAT;
  if (step == nullptr) step = all.step_of(::gettid(), true);
  if (step == nullptr || step->count == step->pages.size()) return HPE_TOUCH_REPEAT;
  step->pages[step->count++] = fault;
  return HPE_TOUCH_STEP;
}

void host_watch::on_step() {
  host_watch& all = *of_process();
  open_pages* const step = all.step_of(::gettid(), false);
  if (step == nullptr) return;
  for (std::size_t n = 0; n < step->count; ++n) all.pages_.close(step->pages[n]);
  step->thread.store(0);
}

bool host_watch::on_protect(void* begin, std::size_t bytes, int allowed, bool* failed) {
  constexpr std::array levels{os::page_protection::none, os::page_protection::read, os::page_protection::read_write};
  return of_process()->pages_.allow(number(begin), number(begin) + bytes, levels[static_cast<std::size_t>(allowed)],
                                    *failed);
}

void host_watch::on_call(const void* begin, std::size_t bytes, bool writes) {
  host_watch& all = *of_process();
  const std::uintptr_t first = number(begin);
  if (all.is_in_use(first, first + bytes)) all.touches_.add(first, first + bytes, writes, nullptr);
}

bool host_watch::on_refusal() { return of_process()->pages_.open_all(); }

bool host_watch::on_pass(const void* begin, std::size_t bytes) {
  host_watch& all = *of_process();
  const std::uintptr_t first = number(begin);
  return all.is_in_use(first, first + bytes) && all.pages_.open(first, first + bytes);
}

bool host_watch::is_in_use(std::uintptr_t begin, std::uintptr_t end) const noexcept {
  return pages_.is_in_use(begin, end);
}

// ---- ranges

void host_watch::close(watched_range& range) {
  range.is_closed = pages_.add(range.what.begin, range.what.end, range.what.is_written, range.what.has_protocol);
  if (!range.is_closed && !std::exchange(has_told_, true))
    log(log_level::warn,
        "HPE_CHECK: not all CPU code that touches memory of queued work is seen: there is too much memory, or the "
        "operating system does not protect it");
}

void host_watch::open(watched_range& range) {
  if (std::exchange(range.is_closed, false)) pages_.remove(range.what.begin, range.what.end, range.what.is_written);
}

void host_watch::end(watched_range& range) {
  open(range);
  if (!range.is_of_message) return;
  if (!range.what.is_written) pages_.take_back(range.what.begin, range.what.end);
  pages_.forget(range.what.begin, range.what.end);  // ordinary memory may be unmapped
}

void host_watch::watch(const use_of_memory& range, const past_ptr& work) {
  if (!sees_touches_.load()) return;
  const lock_guard lock(mutex_);
  const auto same = std::ranges::find_if(in_use_, [&](const watched_range& each) {
    return each.what.begin == range.begin && each.what.end == range.end && each.what.is_written == range.is_written &&
           each.work->self.line == work->self.line;
  });
  if (same != in_use_.end()) {
    same->work = work;
    pages_.add_again(range.begin, range.end);
    return;
  }
  watched_range made{range, work};
  close(made);
  if (made.is_closed) in_use_.push_back(std::move(made));
}

void host_watch::end_waited(const checker& by) {
  const lock_guard lock(mutex_);
  std::erase_if(in_use_, [&](watched_range& each) HPE_NO_THREAD_SAFETY_ANALYSIS {
    if (!by.has_waited(each.work)) return false;
    end(each);
    return true;
  });
  if (pages_.has_missed_touches() && !std::exchange(has_told_, true))
    log(log_level::warn,
        "HPE_CHECK: CPU code touches memory of queued work very often; from now on, only the first touch of each page "
        "is seen");
  if (touches_.has_lost_touches() && !std::exchange(has_told_, true))
    log(log_level::warn,
        "HPE_CHECK: between two calls of CUDA, CPU code has touched memory of queued work at more than {} places; the "
        "further ones are not seen",
        touch_log::most_touches);
}

void host_watch::end_all() {
  const lock_guard lock(mutex_);
  for (watched_range& each : in_use_) end(each);
  in_use_.clear();
}

void host_watch::forget(std::uintptr_t begin, std::uintptr_t stop) {
  const lock_guard lock(mutex_);
  std::erase_if(in_use_, [&](watched_range& each) HPE_NO_THREAD_SAFETY_ANALYSIS {
    if (each.what.begin >= stop || each.what.end <= begin) return false;
    end(each);
    return true;
  });
  pages_.forget(begin, stop);
}

// ---- messages

void host_watch::begin_message(const use_of_memory& buffer) {
  const lock_guard lock(mutex_);
  has_messages_.store(true);
  std::erase_if(in_use_, [&](watched_range& each) HPE_NO_THREAD_SAFETY_ANALYSIS {
    const bool conflicts =
        each.what.begin < buffer.end && each.what.end > buffer.begin && (buffer.is_written || each.what.is_written);
    if (!conflicts || each.is_of_message) return false;
    open(each);
    return true;
  });
}

// Processes of the same machine can read what they receive from the sender's memory, at any time.
void host_watch::watch_message(const use_of_memory& pages, const past_ptr& work) {
  if (!sees_touches_.load()) return;
  const lock_guard lock(mutex_);
  if (!pages.is_written) pages_.lend(pages.begin, pages.end);
  in_use_.push_back({pages, work, true, false});
}

void host_watch::enter_messages() noexcept {
  host_watch* const all = of_process();
  if (all == nullptr) {
    ++threads_in_mpi;
    return;
  }
  const lock_guard lock(all->mutex_);
  if (++threads_in_mpi != 1) return;
  for (watched_range& each : all->in_use_)
    if (each.is_of_message) all->open(each);
}

void host_watch::leave_messages() noexcept {
  host_watch* const all = of_process();
  if (all == nullptr) {
    --threads_in_mpi;
    return;
  }
  const lock_guard lock(all->mutex_);
  if (--threads_in_mpi != 0) return;
  for (watched_range& each : all->in_use_)
    if (each.is_of_message) all->close(each);
}

std::vector<host_touch> host_watch::take_touches() {
  std::vector<host_touch> touches = touches_.take();
  if (has_messages_.load()) std::erase_if(touches, is_by_mpi);
  return touches;
}

std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end) {
  constexpr std::uintptr_t page = watched_pages::page_bytes;
  const std::byte* const first = begin + ((number(begin) + page - 1) / page * page - number(begin));
  const std::byte* const last = end - (number(end) % page);
  return first < last ? std::pair(first, last) : std::pair(end, end);
}

}  // namespace hpe::check
