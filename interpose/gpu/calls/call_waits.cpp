#include "interpose/gpu/calls/call_waits.h"

#include "interpose/gpu/work/queuing_threads.h"

namespace hpe::cuda_hooks {

namespace {

constexpr const char* waiting = "waiting for the work that may use the memory of an I/O or MPI call";

// Whether the driver has refused a wait because a stream is being captured. The captured work does not run yet, so hpe
// need not wait for it.
bool is_captured(CUresult result) {
  return result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

}  // namespace

void call_waits::for_all(CUcontext also) {
  queuing_threads::watch();
  if (queuing_threads::all_done()) return;
  const std::uint64_t number = ++begun_;
  const std::uint64_t noted = uses_.so_far();
  const queuing_threads::queued_so_far queued;
  const CUresult result = program_.wait_for_all(also);
  if (is_captured(result)) return;
  cu_.check(result, waiting);
  queued.done();
  uses_.done(noted);
  std::uint64_t before = over_.load();
  while (before < number && !over_.compare_exchange_weak(before, number)) {
  }
}

void call_waits::for_users_of(const known_allocation& memory) {
  queuing_threads::watch();
  if (by_parameters_) uses_.keep();
  if (queuing_threads::all_done() || for_streams_with(memory)) return;
  for_all(memory.context);
}

// Waits only for the streams whose work uses the memory. Returns false if the caller must wait for all work.
bool call_waits::for_streams_with(const known_allocation& memory) {
  if (!by_parameters_ || !memory.is_allocated || !program_.are_one()) return false;
  const auto held = uses_.hold_streams();
  const auto streams = uses_.streams_that_use({memory.base, memory.base + memory.bytes});
  if (!streams) return false;
  for (const CUstream stream : *streams) {
    const std::uint64_t noted = uses_.so_far();
    const queuing_threads::queued_so_far queued(stream);
    const CUresult result = program_.wait_for(stream, memory.context);
    if (is_captured(result)) return false;
    cu_.check(result, waiting);
    queued.done();
    uses_.done(stream, noted);
  }
  return true;
}

std::uint64_t call_waits::queued_now() noexcept {
  queuing_threads::watch();
  return queuing_threads::all_done() ? 0 : begun_.load() + 1;
}

}  // namespace hpe::cuda_hooks
