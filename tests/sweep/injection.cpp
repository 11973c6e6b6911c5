#include "tests/sweep/injection.h"

#include <execinfo.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tests/operator_new.h"

namespace sweep {

namespace {

// Whether calls of this thread count. True at first, so the calls of the runtime's threads count.
constinit thread_local bool calls_count = true;

constinit injector the_injector;

}  // namespace

constinit std::atomic<std::int64_t> live{0};

const char* name_of(failure kind) noexcept {
  switch (kind) {
    case failure::none: return "none";
    case failure::refusal: return "refusal";
    case failure::late: return "late";
    case failure::loss_before: return "loss_before";
    case failure::loss_after: return "loss_after";
    case failure::system_call: return "system_call";
    case failure::allocation: return "allocation";
    case failure::allocations: return "allocations";
  }
  return "";
}

void call_stacks::add(void* const* frames, int depth, std::uint64_t call) noexcept {
  std::uint64_t stack = 14695981039346656037U;  // FNV-1a, by words
  for (int n = 0; n < depth; ++n) stack = (stack ^ reinterpret_cast<std::uint64_t>(frames[n])) * 1099511628211U;
  stack |= 1;
  while (busy_.test_and_set(std::memory_order_acquire)) {
  }
  for (std::size_t n = 0; n < std::size(entries_); ++n) {
    entry& e = entries_[((stack >> 20) + n) % std::size(entries_)];
    if (e.stack != 0 && e.stack != stack) continue;
    if (e.stack == 0) e = {stack, call, call};
    e.first = std::min(e.first, call);
    e.last = std::max(e.last, call);
    break;
  }
  busy_.clear(std::memory_order_release);
}

std::vector<std::uint64_t> call_stacks::first_and_last() const {
  std::vector<std::uint64_t> calls;
  for (const entry& e : entries_)
    if (e.stack != 0) calls.insert(calls.end(), {e.first, e.last});
  std::ranges::sort(calls);
  calls.erase(std::ranges::unique(calls).begin(), calls.end());
  return calls;
}

void injector::arm(failure kind, std::uint64_t k) noexcept {
  kind_.store(failure::none);
  calls_ = 0;
  fired_ = false;
  k_ = k;
  armed_for_ = kind;
  kind_.store(kind);
}

bool injector::due(failure kind, const char* what, int device) noexcept {
  if (kind_.load(std::memory_order_acquire) != kind || !calls_count) return false;
  const std::uint64_t call = calls_.fetch_add(1) + 1;
  if (stacks_ != nullptr) {
    void* frames[std::size(note{}.frames)];
    stacks_->add(frames, ::backtrace(frames, std::size(frames)), call);
  }
  if (kind == failure::allocations && call == k_ + 1) return true;
  if (call != k_) return false;
  if (device < 0)
    std::snprintf(note_->text, sizeof note_->text, "%s", what);
  else
    std::snprintf(note_->text, sizeof note_->text, "%s on device %d", what, device);
  note_->depth = ::backtrace(note_->frames, std::size(note_->frames));
  fired_ = true;
  return true;
}

injector& injected() noexcept { return the_injector; }

void this_thread_is_the_test() noexcept {
  calls_count = false;
  void* frame = nullptr;
  static_cast<void>(::backtrace(&frame, 1));  // the first call loads a library, which must not happen in a counted call
}

runtime_call::runtime_call() noexcept : before_(calls_count) { calls_count = true; }
runtime_call::~runtime_call() { calls_count = before_; }

test_code::test_code() noexcept : before_(calls_count) { calls_count = false; }
test_code::~test_code() { calls_count = before_; }

std::int64_t live_objects() noexcept { return live.load(); }

}  // namespace sweep

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (sweep::injected().due(sweep::failure::allocation, "operator new") ||
      sweep::injected().due(sweep::failure::allocations, "operator new twice"))
    throw std::bad_alloc();
  void* const p = allocate_by_malloc(bytes, alignment);
  sweep::live.fetch_add(1, std::memory_order_relaxed);
  return p;
}

void release(void* p) noexcept {
  if (p != nullptr) sweep::live.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}

}  // namespace
