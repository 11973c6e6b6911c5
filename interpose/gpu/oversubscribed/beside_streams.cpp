// After cuStreamWaitEvent, hpe may record the event again at once, because the stream waits for the earlier recording.
//
// The thread that ends an open command waits for threads that queue work on the stream, and these may lock mutex_, so
// open commands end without mutex_.
#include "interpose/gpu/oversubscribed/beside_streams.h"

#include <algorithm>

namespace hpe::cuda_hooks {

using device::cuda::entered;

// Commands on an hpe stream finish in order. If is_own, work on an hpe stream counts as finished when it finishes on
// the program's stream. So such an hpe stream represents one stream of the program at a time, and represents the next
// one only when all work of the hpe stream is done.
beside_streams::stand_in* beside_streams::choose(unsigned device, bool is_own) {
  auto& all = made_[{device, is_own}];
  const auto is_free = [&](const stand_in& each) {
    return each.stands_for == 0 && (!is_own || devices_.reached(each.stream->last()));
  };
  if (const auto found = std::ranges::find_if(all, is_free); found != all.end()) return &*found;
  if (all.size() < most_streams) {
    stand_in& made = all.emplace_back();
    try {
      made.stream = &devices_.at(device).create_stream(device::priority::launch);
    } catch (...) {
      all.pop_back();
      throw;
    }
    if (is_own) made.ends_there = &dynamic_cast<device::cuda::cuda_stream&>(*made.stream);
    return &made;
  }
  return is_own ? choose(device, false) : &*std::ranges::min_element(all, {}, &stand_in::stands_for);
}

beside_streams::stand_in beside_streams::of(unsigned device, CUstream program, bool is_own) {
  const lock_guard lock(mutex_);
  stand_in*& found = chosen_[{program, device, is_own}];
  if (found == nullptr) {
    found = choose(device, is_own);
    ++found->stands_for;
    found->chosen = ++choices_;
  }
  return *found;
}

beside_streams::stand_in beside_streams::own_of(unsigned device, CUstream program) {
  const lock_guard lock(mutex_);
  const auto found = chosen_.find({program, device, true});
  return found != chosen_.end() && found->second != nullptr ? *found->second : stand_in{};
}

template <class Visit>
void beside_streams::each_own(std::optional<CUstream> program, const Visit& visit) noexcept {
  const auto nth = [&](unsigned device, std::size_t n) -> device::cuda::cuda_stream* {
    if (program) return n == 0 ? own_of(device, *program).ends_there : nullptr;
    const lock_guard lock(mutex_);
    const auto all = made_.find({device, true});
    return all != made_.end() && n < all->second.size() ? all->second[n].ends_there : nullptr;
  };
  for (unsigned device = 0; device < devices_.size(); ++device)
    for (std::size_t n = 0; auto* const each = nth(device, n); ++n) visit(*each);
}

bool beside_streams::is_non_blocking(CUstream program) const noexcept {
  unsigned flags = 0;
  return program != CU_STREAM_PER_THREAD && cu_.cuStreamGetFlags != nullptr &&
         cu_.cuStreamGetFlags(program, &flags) == CUDA_SUCCESS && (flags & CU_STREAM_NON_BLOCKING) != 0;
}

void beside_streams::end_open() noexcept {
  using device::cuda::cuda_stream;
  each_own(std::nullopt, [](cuda_stream& each) { each.end_open(cuda_stream::all, cuda_stream::opening::awaited); });
}

// The legacy stream and the blocking streams wait for each other, so a wait of one of them delays the others' events.
void beside_streams::divide(std::optional<CUstream> program, device::cuda::division where) noexcept {
  const auto divide_each = [&](device::cuda::cuda_stream& each) { each.divide(where); };
  const bool delays_others = program && where == device::cuda::division::before_wait;
  if (delays_others && *program == CU_STREAM_LEGACY) return each_own(std::nullopt, divide_each);
  each_own(program, divide_each);
  if (delays_others && !is_non_blocking(*program)) each_own(CU_STREAM_LEGACY, divide_each);
}

void beside_streams::ends(CUstream program) noexcept {
  each_own(program, [](device::cuda::cuda_stream& each) { each.end_open(); });
  const lock_guard lock(mutex_);
  for (auto each = chosen_.lower_bound({program, 0, false});
       each != chosen_.end() && std::get<CUstream>(each->first) == program;) {
    if (each->second != nullptr) --each->second->stands_for;
    each = chosen_.erase(each);
  }
}

void beside_streams::ends(CUcontext context) noexcept {
  const lock_guard lock(mutex_);
  events_.erase(context);
}

// Throws nothing, because work may have been queued already. If host memory is too short for the list of the context,
// give_back() destroys the event.
CUresult beside_streams::take(CUcontext context, CUevent& event) noexcept {
  try {
    const lock_guard lock(mutex_);
    std::vector<CUevent>& idle = events_[context];
    if (!idle.empty()) {
      event = idle.back();
      idle.pop_back();
      return CUDA_SUCCESS;
    }
  } catch (const std::bad_alloc&) {
  }
  return cu_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
}

// Adds an event to the list of its context. Destroys the event if it cannot be added, or if ends() has removed the
// list.
void beside_streams::give_back(CUcontext context, CUevent event) noexcept {
  try {
    const lock_guard lock(mutex_);
    if (const auto found = events_.find(context); found != events_.end()) return found->second.push_back(event);
  } catch (const std::bad_alloc&) {
  }
  cu_.cuEventDestroy(event);
}

CUresult beside_streams::follow(CUstream later, CUcontext of_later, CUstream earlier, CUcontext of_earlier) {
  CUevent between = nullptr;
  CUresult result = CUDA_SUCCESS;
  {
    const entered here(cu_, of_earlier);
    result = take(of_earlier, between);
    if (result == CUDA_SUCCESS) result = cu_.cuEventRecord(between, earlier);
  }
  if (result == CUDA_SUCCESS) {
    const entered here(cu_, of_later);
    result = cu_.cuStreamWaitEvent(later, between, 0);
  }
  if (between != nullptr) give_back(of_earlier, between);
  return result;
}

}  // namespace hpe::cuda_hooks
