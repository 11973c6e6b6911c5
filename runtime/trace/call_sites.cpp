// A slot always belongs to the first key that was written into it. The thread that wrote the key also writes the stack,
// once; other threads may read the stack when `frames` is not 0.
#include "runtime/trace/call_sites.h"

#include <algorithm>

#include "runtime/base/fnv1a.h"

namespace hpe::trace {

namespace {

std::uint64_t hash_of(unsigned kind, void* const* stack, int frames) {
  fnv1a hash;
  hash.add(kind);
  for (int i = 0; i < frames; ++i) hash.add(reinterpret_cast<std::uintptr_t>(stack[i]));
  return hash.value() | 1;  // key 0 marks a free slot
}

thread_local const call_stack* counted_for = nullptr;

}  // namespace

void count_for(const call_stack* place) noexcept {
  counted_for = place != nullptr && place->count > 0 ? place : nullptr;
}

call_sites::call_sites() : slots_(std::make_unique<site_slot[]>(capacity + 1)) { call_stack::prepare(); }

call_sites::site_slot& call_sites::find(std::uint64_t key, unsigned kind, void* const* stack, int frames) noexcept {
  constexpr std::size_t probes = 64;
  for (std::size_t i = 0; i < probes; ++i) {
    site_slot& s = slots_[(key + i) % capacity];
    std::uint64_t seen = s.key.load(std::memory_order_relaxed);
    if (seen == 0 && s.key.compare_exchange_strong(seen, key)) {
      std::copy(stack, stack + frames, s.stack.begin());
      s.kind = kind;
      s.frames.store(frames, std::memory_order_release);
      return s;
    }
    if (seen == key) return s;
  }
  return slots_[capacity];
}

void call_sites::add(unsigned kind, std::uint64_t bytes, std::chrono::nanoseconds time, const void* from,
                     const void* address) noexcept {
  call_stack all = counted_for != nullptr ? *counted_for : call_stack::here();
  void** const begin = all.frames.data();
  void** const end = begin + std::max(1, all.count);
  void** const found = std::find(begin, end, from);
  void** const stack = found != end ? found : begin;
  const auto frames = static_cast<int>(end - stack);
  site_slot& s = find(hash_of(kind, stack, frames), kind, stack, frames);
  s.calls.fetch_add(1, std::memory_order_relaxed);
  s.bytes.fetch_add(bytes, std::memory_order_relaxed);
  s.nanoseconds.fetch_add(time.count(), std::memory_order_relaxed);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at == 0) return;
  for (std::uintptr_t low = s.lowest.load(std::memory_order_relaxed);
       (low == 0 || at < low) && !s.lowest.compare_exchange_weak(low, at, std::memory_order_relaxed);) {
  }
  for (std::uintptr_t high = s.highest.load(std::memory_order_relaxed);
       at > high && !s.highest.compare_exchange_weak(high, at, std::memory_order_relaxed);) {
  }
}

std::vector<site> call_sites::all() const {
  std::vector<site> result;
  for (std::size_t i = 0; i <= capacity; ++i) {
    const site_slot& s = slots_[i];
    const std::uint64_t calls = s.calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    const int frames = s.frames.load(std::memory_order_acquire);
    result.push_back({{s.stack.begin(), s.stack.begin() + frames},
                      s.kind,
                      calls,
                      s.bytes.load(std::memory_order_relaxed),
                      std::chrono::nanoseconds(s.nanoseconds.load(std::memory_order_relaxed)),
                      s.lowest.load(std::memory_order_relaxed),
                      s.highest.load(std::memory_order_relaxed)});
  }
  std::sort(result.begin(), result.end(),
            [](const site& a, const site& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.time > b.time; });
  return result;
}

}  // namespace hpe::trace
