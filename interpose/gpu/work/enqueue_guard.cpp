#include "interpose/gpu/work/enqueue_guard.h"

#include <algorithm>

#include "interpose/gpu/hooks/memory_kind.h"

namespace hpe::cuda_hooks {

namespace {

// Whether a word in the parameters of a launch may be an address: in user space, above the first megabyte.
bool may_be_address(CUdeviceptr word) noexcept { return word >> 20 != 0 && word >> 47 == 0; }

}  // namespace

// If steps() throws, the constructor throws and the destructor does not run, so this function calls leave().
void enqueue_guard::begin(function_ref<void()> steps) {
  try {
    steps();
  } catch (...) {
    queuing_threads::leave(here_);
    throw;
  }
}

void enqueue_guard::await_deferred(std::initializer_list<used_range> ranges, const interpose::copy_queue* after) {
  if (!deferred_copies::any()) return;
  deferred_copies& deferred = interposer::started()->deferred();
  // tell() may upload bytes that CPU code has written, also bytes beside the ranges.
  if (ranges.size() == 0 || adopted_memory::any()) return deferred.finish();
  for (const used_range& each : ranges) deferred.finish_before(each, after);
}

void enqueue_guard::tell(std::initializer_list<used_range> ranges) {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr) return;
  if (queued_uses::kept() && ranges.size() != 0) {
    used_ = std::make_unique<std::vector<queued_uses::queued_range>>();
    for (const used_range& r : ranges) used_->push_back({r.address, r.end()});
  }
  if (!adopted_memory::any()) return;
  // begin_work() adds this work to the list of work in flight. leave() is called first, because another thread may wait
  // for it before that thread reads the list (adopted_memory::wait_until_queued).
  queuing_threads::leave(here_);
  result_ = ranges.size() == 0 ? hpe->adopted().begin_work(in_flight_) : hpe->adopted().begin_work(in_flight_, ranges);
  begun_ = result_ == CUDA_SUCCESS;
}

void enqueue_guard::tell(const kernel_launch& launch) {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr || (!queued_uses::kept() && !adopted_memory::any())) return;
  if (!hpe->scope_is_parameters()) return tell(std::initializer_list<used_range>{});
  const auto words = words_of(hpe->driver(), launch);
  if (!words) return tell(std::initializer_list<used_range>{});
  if (queued_uses::kept()) {
    used_ = std::make_unique<std::vector<queued_uses::queued_range>>();
    const auto use = [&](CUdeviceptr address) {
      if (may_be_address(address)) used_->push_back({address, address + 1});
    };
    for (const CUdeviceptr word : *words) use(word);
    hpe->uses().for_each_texture(use);
  }
  if (!adopted_memory::any()) return;
  queuing_threads::leave(here_);
  result_ = hpe->adopted().begin_work(in_flight_, *words);
  begun_ = result_ == CUDA_SUCCESS;
}

// Whether the work may write memory that no kind of memory has allocated.
bool enqueue_guard::may_write_for_driver(std::initializer_list<used_range> ranges) {
  const auto writes = [](const used_range& r) {
    return r.written && r.bytes != 0 &&
           !memory_kinds::first([&](memory_kind& kind) { return kind.range_at(r.address); });
  };
  return ranges.size() == 0 || std::any_of(ranges.begin(), ranges.end(), writes);
}

void enqueue_guard::end() noexcept { interposer::started()->adopted().end_work(in_flight_); }

// Records the work in queued_uses. If keep() was called after this object was constructed, used_ is null, so the work
// counts as work that may use any memory.
void enqueue_guard::note() noexcept {
  interposer* const hpe = interposer::started();
  if (hpe == nullptr) return;
  if (used_ != nullptr) {
    hpe->queued().note(stream_, *used_);
  } else {
    hpe->queued().note_any(stream_);
  }
}

}  // namespace hpe::cuda_hooks
