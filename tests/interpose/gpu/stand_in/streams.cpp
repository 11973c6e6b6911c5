// Contexts, streams and events. Objects with handles are never deleted, so that the stand-in recognises handles of
// ended objects. One mutex orders the queuing of work on all streams, because work on the legacy stream depends on the
// other streams.
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/gpu/stand_in/machine.h"

namespace stand_in {

namespace {

template <class T>
T& immortal() {
  static auto* const it = new T;
  return *it;
}

// Never destroyed, because programs call the driver while they exit.
std::mutex state;
auto& calls = immortal<std::map<std::string, unsigned>>();
struct failure {
  unsigned passed;
  CUresult result;
  bool always;
};
auto& failures = immortal<std::map<std::string, failure>>();
/// For each entry, the function to run at the beginning of the entry's next call.
auto& meanwhiles = immortal<std::map<std::string, std::function<void()>>>();

std::set<stream*>& streams() { return immortal<std::set<stream*>>(); }
std::set<event*>& events() { return immortal<std::set<event*>>(); }

struct gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
};
gate& pause_gate() { return immortal<gate>(); }

stream* default_stream(context& c, bool legacy) {
  static std::map<std::pair<context*, bool>, stream*>& all = immortal<std::map<std::pair<context*, bool>, stream*>>();
  stream* made = nullptr;
  {
    const std::lock_guard lock(state);
    stream*& kept = all[{&c, legacy}];
    if (kept == nullptr || kept->generation != c.generation) {
      kept = new stream{&c, c.generation, legacy ? stream_kind::legacy : stream_kind::blocking, false, {}};
      streams().insert(kept);
    }
    made = kept;
  }
  return made;
}

CUresult alive(const context* of, std::uint64_t generation) {
  return of->generation == generation && of->users > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

void count(const char* symbol) {
  std::function<void()> meanwhile;
  {
    const std::lock_guard lock(state);
    ++calls[symbol];
    if (const auto found = meanwhiles.extract(symbol)) meanwhile = found.mapped();
  }
  if (meanwhile) meanwhile();
}

STAND_IN void stand_in_meanwhile(const char* symbol, void (*run)(void*), void* argument) {
  const std::lock_guard lock(state);
  meanwhiles[symbol] = [=] { run(argument); };
}

CUresult refusal(const char* symbol) {
  const std::lock_guard lock(state);
  const auto found = failures.find(symbol);
  if (found == failures.end()) return CUDA_SUCCESS;
  if (found->second.always) return found->second.result;
  if (found->second.passed-- > 0) return CUDA_SUCCESS;
  return failures.extract(found).mapped().result;
}

STAND_IN void stand_in_fail(const char* symbol, unsigned passed, CUresult result) {
  const std::lock_guard lock(state);
  failures[symbol] = {passed, result, false};
}

STAND_IN void stand_in_fail_always(const char* symbol, CUresult result) {
  const std::lock_guard lock(state);
  if (result == CUDA_SUCCESS)
    failures.erase(symbol);
  else
    failures[symbol] = {0, result, true};
}

STAND_IN unsigned stand_in_count(const char* symbol) {
  const std::lock_guard lock(state);
  return calls[symbol];
}
STAND_IN void stand_in_pause(int paused) { pause(paused != 0); }

// ---- contexts ----------------------------------------------------------------------------------------------------

context* primary(int device) {
  static auto* const all = new context[device_count]{{0}, {1}};  // never destroyed, like the state above
  return device >= 0 && device < device_count ? &all[device] : nullptr;
}

// The context is never deleted, like all objects with handles: a program may use the handle of a context that has
// ended.
context* make_context(int device) {
  static auto* const all = new std::vector<std::unique_ptr<context>>;
  const std::lock_guard lock(state);
  return all->emplace_back(new context{device, 1}).get();
}

context_list& context_stack() {
  static thread_local context_list stack;
  return stack;
}

CUresult current(context*& found) {
  const auto& stack = context_stack();
  found = stack.empty() ? nullptr : context_of(stack.back());
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return found->users > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// ---- queues ------------------------------------------------------------------------------------------------------

std::uint64_t queue::add(std::function<void()> work) {
  // STAND_IN_AT_ONCE is for measurements of the cost of hpe's hooks.
  static const bool at_once = std::getenv("STAND_IN_AT_ONCE") != nullptr;
  const std::lock_guard lock(mutex_);
  if (at_once) return work(), done_ = ++added_;
  if (!started_) std::thread([this] { run(); }).detach();  // runs until the process ends, like the queue
  started_ = true;
  work_.push_back(std::move(work));
  changed_.notify_all();
  return ++added_;
}

void queue::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

bool queue::reached(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

std::uint64_t queue::last() {
  const std::lock_guard lock(mutex_);
  return added_;
}

void queue::run() {
  for (;;) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !work_.empty(); });
      next = std::move(work_.front());
      work_.pop_front();
    }
    {
      std::unique_lock lock(pause_gate().mutex);
      pause_gate().changed.wait(lock, [] { return !pause_gate().closed; });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    next();
    next = nullptr;
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

void pause(bool paused) {
  const std::lock_guard lock(pause_gate().mutex);
  pause_gate().closed = paused;
  pause_gate().changed.notify_all();
}

// ---- streams and events ------------------------------------------------------------------------------------------

CUresult find(CUstream given, stream*& found) {
  if (given == nullptr || given == CU_STREAM_LEGACY || given == CU_STREAM_PER_THREAD) {
    context* c = nullptr;
    if (const CUresult wrong = current(c); wrong != CUDA_SUCCESS) return wrong;
    found = default_stream(*c, given != CU_STREAM_PER_THREAD);
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(state);
  found = reinterpret_cast<stream*>(given);
  if (!streams().contains(found) || found->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  return alive(found->of, found->generation);
}

CUresult find(CUevent given, event*& found) {
  const std::lock_guard lock(state);
  found = reinterpret_cast<event*>(given);
  if (!events().contains(found) || found->destroyed) return CUDA_ERROR_INVALID_HANDLE;
  return alive(found->of, found->generation);
}

stream* make_stream(context& c, stream_kind kind) {
  const std::lock_guard lock(state);
  return *streams().insert(new stream{&c, c.generation, kind, false, {}}).first;
}

event* make_event(context& c) {
  const std::lock_guard lock(state);
  return *events().insert(new event{&c, c.generation, false, {}, {}, {}}).first;
}

void count_streams(held& all) {
  const std::lock_guard lock(state);
  for (const stream* s : streams()) all.streams += s->destroyed || alive(s->of, s->generation) != CUDA_SUCCESS ? 0 : 1;
  for (const event* e : events()) all.events += e->destroyed || alive(e->of, e->generation) != CUDA_SUCCESS ? 0 : 1;
}

std::uint64_t add(stream& s, std::function<void()> work) {
  // The legacy stream and the blocking streams of a context wait for each other.
  std::vector<std::pair<queue*, std::uint64_t>> before;
  const std::lock_guard lock(state);
  if (s.is_recording()) return s.recorded.push_back(std::move(work)), 0;
  for (stream* other : streams()) {
    const bool ordered = s.kind != stream_kind::non_blocking && other->kind != stream_kind::non_blocking &&
                         (s.kind == stream_kind::legacy) != (other->kind == stream_kind::legacy);
    if (ordered && other->of == s.of) before.emplace_back(&other->work, other->work.last());
  }
  return s.work.add([before = std::move(before), work = std::move(work)] {
    for (const auto& [q, number] : before) q->wait(number);
    work();
  });
}

bool invalidate_captures(const context& c) {
  bool any = false;
  const std::lock_guard lock(state);
  for (stream* s : streams()) {
    if (s->of != &c || s->generation != c.generation || s->destroyed || s->capture == capture_state::none) continue;
    s->capture = capture_state::invalidated;
    any = true;
  }
  return any;
}

void wait_for(const context& c) {
  std::vector<std::pair<queue*, std::uint64_t>> all;
  {
    const std::lock_guard lock(state);
    for (stream* s : streams())
      if (s->of == &c) all.emplace_back(&s->work, s->work.last());
  }
  for (const auto& [q, number] : all) q->wait(number);
}

}  // namespace stand_in
