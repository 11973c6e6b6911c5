#include "interpose/gpu/oversubscribed/unfinished_parts.h"

#include <vector>

namespace hpe::cuda_hooks {

using device::cuda::entered;

unfinished_parts::state& unfinished_parts::begin(const place& where) {
  const lock_guard lock(mutex_);
  state& its = streams_[where];
  ++its.being_queued;
  return its;
}

unfinished_parts::queuing::queuing(unfinished_parts& of, CUcontext context, CUstream stream)
    : of_(of), its_(of.begin({context, stream})) {}

unfinished_parts::queuing::~queuing() {
  const lock_guard lock(of_.mutex_);
  --its_.being_queued;
  its_.latest = ++of_.queued_;
}

// Asks about a stream only until its parts have finished, because these calls would make every later wait of the
// program slower. If another thread has queued a part since then, the stream stays in the table.
CUresult unfinished_parts::failure() {
  std::vector<std::pair<place, std::uint64_t>> streams;  // with their latest parts
  {
    const lock_guard lock(mutex_);
    for (const auto& [where, its] : streams_) streams.emplace_back(where, its.latest);
  }
  for (const auto& [where, latest] : streams) {
    const auto& [context, stream] = where;
    const entered here(cu_, context);
    CUresult result = cu_.cuStreamQuery(stream);
    if (result == CUDA_SUCCESS) result = cu_.cuStreamSynchronize(stream);
    if (result == CUDA_ERROR_NOT_READY) continue;
    if (result != CUDA_SUCCESS) return result;
    const lock_guard lock(mutex_);
    const auto found = streams_.find(where);
    if (found == streams_.end()) continue;  // another thread has asked, too
    if (found->second.latest == latest && found->second.being_queued == 0) streams_.erase(found);
  }
  return CUDA_SUCCESS;
}

}  // namespace hpe::cuda_hooks
