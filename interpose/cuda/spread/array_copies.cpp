// A copy is filled on the stream of the launch that wants it. The bytes must be those after all writes that the program
// has queued, also on other streams, because later launches take the copy for valid: so the filling waits for the
// streams on which the program writes. It waits as well for the launches that read the copy's old bytes.
#include "interpose/cuda/spread/array_copies.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

constexpr std::size_t left_free = std::size_t{64} << 20;  // device memory that copies leave to the program

}  // namespace

bool array_copies::is_all_on(const dealt_memory::range& r, unsigned gpu) {
  return std::all_of(r.pieces.begin(), r.pieces.end(), [&](const auto& p) { return p.gpu == gpu; });
}

bool array_copies::are_valid(const dealt_memory::range& r) const {
  if (all_.empty()) return false;
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    const auto found = all_.find({r.base, n});
    if (!is_all_on(r, n) && (found == all_.end() || found->second.contents != r.contents)) return false;
  }
  return true;
}

bool array_copies::allocate(copy& made, std::uint64_t bytes, unsigned gpu) const {
  if (cu_.cuMemAlloc == nullptr || gpus_.memory_of(gpu).free < bytes + left_free) return false;
  made.bytes = bytes;
  return cu_.cuMemAlloc(&made.memory, bytes) == CUDA_SUCCESS;
}

// An event can be recorded anew while somebody waits for its earlier recording.
void array_copies::wait_for_writers(CUstream waiting, unsigned gpu, CUstream own) {
  for (const CUcontext context : contexts_of_others_) {
    const entered here(cu_, context);
    const CUresult result = cu_.cuCtxSynchronize();
    if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED) cu_.check(result, "waiting for writes of an array");
  }
  contexts_of_others_.clear();
  for (const auto& [context, writer] : writers_) {
    if (context == gpus_.context(0) && writer == own) continue;
    CUevent reached = nullptr;
    {
      const entered here(cu_, context);
      cu_.check(cu_.cuEventCreate(&reached, CU_EVENT_DISABLE_TIMING), "making an event on a GPU");
      cu_.check(cu_.cuEventRecord(reached, writer), "following a stream of the program");
    }
    const entered here(cu_, gpus_.context(gpu));
    const CUresult result = cu_.cuStreamWaitEvent(waiting, reached, 0);
    cu_.cuEventDestroy(reached);
    cu_.check(result, "following a stream of the program");
  }
}

void array_copies::fill(copy& to, const dealt_memory::range& r, unsigned gpu,
                        const std::shared_ptr<program_lane>& lane) {
  const CUstream stream = lane->stream(gpu);
  wait_for_writers(stream, gpu, lane->stream(0));
  for (const auto& reader : to.users)
    if (reader != lane) cu_.check(reader->await(stream, gpu), "waiting for readers of an array");
  cu_.check(cu_.cuMemcpyAsync(to.memory, r.base, r.bytes, stream), "copying an array to a GPU");
  cu_.check(lane->mark(gpu), "marking the copy of an array");
  to.contents = r.contents;
  to.users = {lane};
}

CUdeviceptr array_copies::bring(const dealt_memory::range& r, unsigned gpu, const std::shared_ptr<program_lane>& lane) {
  if (is_all_on(r, gpu)) return r.base;
  const entered here(cu_, gpus_.context(gpu));
  auto [at, is_new] = all_.try_emplace({r.base, gpu});
  copy& c = at->second;
  if (is_new && !allocate(c, r.bytes, gpu)) {
    all_.erase(at);
    return 0;
  }
  if (c.contents != r.contents) {
    fill(c, r, gpu, lane);
  } else if (!c.users.contains(lane)) {
    // The mark of a lane is behind the filling, if the lane filled the copy or waited for it.
    if (!c.users.empty())
      cu_.check((*c.users.begin())->await(lane->stream(gpu), gpu), "waiting for the copy of an array");
    c.users.insert(lane);
  }
  return c.memory;
}

void array_copies::written_on(CUstream stream) {
  CUcontext context = nullptr;
  const bool is_own = stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  const CUresult found = is_own ? cu_.cuStreamGetCtx(stream, &context) : cu_.cuCtxGetCurrent(&context);
  const bool is_known = found == CUDA_SUCCESS && context != nullptr;
  if (is_known && (is_own || stream == CU_STREAM_LEGACY)) {
    writers_.emplace(context, stream);
    return;
  }
  if (is_known) contexts_of_others_.insert(context);
  if (stream != CU_STREAM_PER_THREAD)
    for (unsigned n = 0; n < gpus_.count(); ++n) contexts_of_others_.insert(gpus_.context(n));
}

void array_copies::forget_stream(CUstream stream) {
  for (auto w = writers_.begin(); w != writers_.end();) {
    if (w->second == stream) contexts_of_others_.insert(w->first);
    w = w->second == stream ? writers_.erase(w) : std::next(w);
  }
}

void array_copies::forget_ended_lanes() {
  for (auto& [which, c] : all_) std::erase_if(c.users, [](const auto& lane) { return lane->is_over(); });
}

// The work of contexts that go on is waited for as a whole. A context ends after its work.
void array_copies::forget_streams(CUcontext ended) {
  for (const auto& [context, writer] : writers_) contexts_of_others_.insert(context);
  writers_.clear();
  contexts_of_others_.erase(ended);
}

void array_copies::free(const copy& c, unsigned gpu) const {
  const entered here(cu_, gpus_.context(gpu));
  cu_.cuMemFree(c.memory);
}

void array_copies::forget(const dealt_memory::range& r) {
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    const auto found = all_.find({r.base, n});
    if (found == all_.end()) continue;
    free(found->second, n);
    all_.erase(found);
  }
}

bool array_copies::forget_all() {
  for (const auto& [which, c] : all_) free(c, which.second);
  return !std::exchange(all_, {}).empty();
}

}  // namespace hpe::cuda_hooks
