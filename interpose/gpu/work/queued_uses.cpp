// Hooks record a piece of work after the driver has queued it. So if a thread reads so_far() before it waits, the wait
// covers all work up to that number.
#include "interpose/gpu/work/queued_uses.h"

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/queuing_threads.h"

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t most_uses = 1024;  // the largest number of recorded uses on one stream (see shrink())

bool meet(queued_uses::queued_range a, queued_uses::queued_range b) noexcept {
  return a.begin < b.end && b.begin < a.end;
}

// The per-thread default streams of all threads have the same handle, and a wait for the caller's stream does not cover
// the work of other threads. So work on these streams counts as work on an unknown stream.
CUstream waitable(CUstream stream) noexcept { return stream == CU_STREAM_PER_THREAD ? unknown_stream() : stream; }

}  // namespace

void queued_uses::keep() {
  if (kept()) return;
  {
    const lock_guard lock(mutex_);
    (void)streams_[unknown_stream()];
  }
  // When wait_until_none() returns, each thread that did not see the flag has queued its work; note_any() covers this
  // work.
  note_any(unknown_stream());
  is_kept.store(true, std::memory_order_seq_cst);
  call_watch::begin(call_watch::waits);
  queuing_threads::wait_until_none();
}

void queued_uses::note(CUstream stream, std::span<const queued_range> used) noexcept { add(stream, used); }

void queued_uses::note_any(CUstream stream) noexcept { add(stream, std::nullopt); }

void queued_uses::add(CUstream stream, std::optional<std::span<const queued_range>> used) noexcept {
  const lock_guard lock(mutex_);
  const std::uint64_t number = noted_.load(std::memory_order_relaxed) + 1;
  unfinished_work* w = nullptr;
  try {
    w = &streams_[waitable(stream)];
    if (used)
      for (const queued_range& r : *used) w->uses.push_back({r, number});
    if (w->uses.size() > most_uses) w->shrink();
  } catch (const std::bad_alloc&) {
    used.reset();
  }
  if (w == nullptr) w = &streams_.at(unknown_stream());  // exists, because keep() has created this entry
  w->last = number;
  if (!used) w->last_of_anything = number;
  noted_.store(number, std::memory_order_release);
}

// Removes all but the last use of each range. If too many uses remain, replaces them by one use of any memory.
void queued_uses::unfinished_work::shrink() {
  std::ranges::sort(uses, [](const noted_use& a, const noted_use& b) {
    return std::tie(a.memory.begin, a.memory.end, b.number) < std::tie(b.memory.begin, b.memory.end, a.number);
  });
  const auto same = [](const noted_use& a, const noted_use& b) {
    return a.memory.begin == b.memory.begin && a.memory.end == b.memory.end;
  };
  uses.erase(std::unique(uses.begin(), uses.end(), same), uses.end());
  if (uses.size() <= most_uses / 2) return;
  uses.clear();
  last_of_anything = last;
}

void queued_uses::unfinished_work::drop(std::uint64_t number) {
  if (last_of_anything <= number) last_of_anything = 0;
  if (last <= number) return uses.clear();
  std::erase_if(uses, [number](const noted_use& u) { return u.number <= number; });
}

bool queued_uses::unfinished_work::uses_any_of(queued_range memory) const noexcept {
  return last_of_anything != 0 || std::ranges::any_of(uses, [&](const noted_use& u) { return meet(u.memory, memory); });
}

void queued_uses::done(std::uint64_t number) noexcept {
  if (!kept()) return;
  const lock_guard lock(mutex_);
  for (auto& [stream, w] : streams_) w.drop(number);
}

void queued_uses::done(CUstream stream, std::uint64_t number) noexcept {
  if (!kept() || stream == CU_STREAM_PER_THREAD) return;
  const lock_guard lock(mutex_);
  if (const auto found = streams_.find(stream); found != streams_.end()) found->second.drop(number);
}

std::optional<std::vector<CUstream>> queued_uses::streams_that_use(queued_range memory) const {
  std::vector<CUstream> result;
  const lock_guard lock(mutex_);
  for (const auto& [stream, w] : streams_) {
    if (!w.uses_any_of(memory)) continue;
    if (stream == unknown_stream()) return std::nullopt;
    result.push_back(stream);
  }
  return result;
}

void queued_uses::ends(CUstream stream) noexcept {
  if (!kept()) return;
  const std::lock_guard no_waits(ends_);
  const lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const unfinished_work gone = std::move(found->second);
  streams_.erase(found);
  unfinished_work& rest = streams_[unknown_stream()];
  rest.last = std::max(rest.last, gone.last);
  rest.last_of_anything = std::max(rest.last_of_anything, gone.last_of_anything);
  try {
    rest.uses.insert(rest.uses.end(), gone.uses.begin(), gone.uses.end());
    if (rest.uses.size() > most_uses) rest.shrink();
  } catch (const std::bad_alloc&) {
    rest.last_of_anything = rest.last;
  }
}

}  // namespace hpe::cuda_hooks
