#include "interpose/gpu/check/checked_streams.h"

#include <unistd.h>

#include <algorithm>

#include "interpose/gpu/work/default_stream.h"

namespace hpe::cuda_hooks {

CUcontext checked_streams::current() const {
  CUcontext found = nullptr;
  return cu_.cuCtxGetCurrent(&found) == CUDA_SUCCESS ? found : nullptr;
}

bool checked_streams::is_captured(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return stream != nullptr && cu_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

checked_streams::context& checked_streams::find(CUcontext given) {
  const auto [found, is_new] = contexts_.try_emplace(given);
  if (is_new) found->second.number = static_cast<int>(contexts_.size());
  return found->second;
}

checked_streams::stream& checked_streams::find(CUstream given) {
  if (given == nullptr) given = CU_STREAM_LEGACY;
  const key its{given, is_default(given) ? current() : nullptr, given == CU_STREAM_PER_THREAD ? ::gettid() : 0};
  const auto [found, is_new] = streams_.try_emplace(its);
  stream& made = found->second;
  if (!is_new) return made;
  made.of = its.of;
  if (!is_default(given)) static_cast<void>(cu_.cuStreamGetCtx(given, &made.of));
  unsigned flags = 0;
  if (!is_default(given) && cu_.cuStreamGetFlags != nullptr) static_cast<void>(cu_.cuStreamGetFlags(given, &flags));
  made.how = given == CU_STREAM_LEGACY                ? kind::legacy
             : (flags & CU_STREAM_NON_BLOCKING) != 0U ? kind::non_blocking
                                                      : kind::blocking;
  context& in = find(made.of);
  made.line = checker_.add_line(in.number);
  unsigned long long id = 0;
  const bool has_id = cu_.cuStreamGetId != nullptr && cu_.cuStreamGetId(given, &id) == CUDA_SUCCESS;
  made.id = has_id ? id : made.line + 1;
  if (made.how == kind::legacy) in.legacy.push_back(made.line);
  if (made.how == kind::blocking) in.blocking.push_back(made.line);
  return made;
}

// The lines of destroyed streams remain until CPU code has waited for their work.
std::vector<std::uint32_t> checked_streams::lines_before(const stream& of) {
  if (of.how == kind::non_blocking) return {};
  context& in = find(of.of);
  if (of.how == kind::blocking) return in.legacy;
  std::erase_if(in.blocking, [this](std::uint32_t line) { return checker_.is_settled(line); });
  return in.blocking;
}

std::shared_ptr<const check::checked_work> checked_streams::queue_on(
    stream& on, const check::queued_kind& kind, const std::shared_ptr<const check::call_place>& place) {
  check::queued_kind its = kind;
  its.waits_for_unknown |= std::exchange(on.after_unknown, false);
  const std::vector<check::past_ptr> after = std::exchange(on.after, {});
  return checker_.queue(on.line, on.id, after, lines_before(on), its, place);
}

std::shared_ptr<const check::checked_work> checked_streams::queue(
    CUstream on, const check::queued_kind& kind, const std::shared_ptr<const check::call_place>& place) {
  const lock_guard lock(mutex_);
  return queue_on(find(on), kind, place);
}

void checked_streams::wait_for(const stream& waited) {
  std::vector<std::uint32_t> lines{waited.line};
  if (waited.how == kind::legacy)
    for (const std::uint32_t each : lines_before(waited)) lines.push_back(each);
  for (const check::past_ptr& each : checker_.last_of(lines))
    if (each != nullptr) checker_.wait(each);
}

void checked_streams::order(const order_step& step, const std::shared_ptr<const check::call_place>& place) {
  using enum order_step::kind;
  if ((step.what == recorded || step.what == stream_waits) && is_captured(step.stream)) return;
  const lock_guard lock(mutex_);
  switch (step.what) {
    // A recording is work of its own: in the legacy stream, it waits for the other streams.
    case recorded: events_[step.event].recorded = queue_on(find(step.stream), {}, place)->when; return;
    case event_is_shared: events_[step.event].is_shared = true; return;
    case event_ends: events_.erase(step.event); return;
    case stream_waits: {
      stream& waits = find(step.stream);
      const auto found = events_.find(step.event);
      if (step.event == nullptr || (found != events_.end() && found->second.is_shared))
        waits.after_unknown = true;
      else if (found != events_.end() && found->second.recorded != nullptr)
        waits.after.push_back(found->second.recorded);
      return;
    }
    case waited_for_event:
      if (const auto found = events_.find(step.event); found != events_.end() && found->second.recorded != nullptr)
        checker_.wait(found->second.recorded);
      return;
    case waited_for_stream: return wait_for(find(step.stream));
    case waited_for_context:
      for (const check::past_ptr& each :
           checker_.last_of_device(find(step.context != nullptr ? step.context : current()).number))
        if (each != nullptr) checker_.wait(each);
      return;
  }
}

void checked_streams::waited_for_all() {
  const lock_guard lock(mutex_);
  for (const auto& [handle, each] : contexts_)
    for (const check::past_ptr& past : checker_.last_of_device(each.number))
      if (past != nullptr) checker_.wait(past);
}

void checked_streams::ends(CUstream stream) {
  const lock_guard lock(mutex_);
  const auto found = streams_.find(key{stream, nullptr, 0});
  if (found == streams_.end()) return;
  checker_.end_line(found->second.line);
  streams_.erase(found);
}

}  // namespace hpe::cuda_hooks
