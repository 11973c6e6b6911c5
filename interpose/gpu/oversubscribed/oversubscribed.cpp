// Invariants:
//
// An hpe stream represents one stream of the program, or several streams if the program has many: the work that run()
// queues on the program's stream finishes before later work of the hpe stream runs. So the timepoints of the hpe stream
// show when the program's work is done.
//
// The program's stream waits for all work for which its hpe stream waits. If queuing has failed, the program's stream
// may not wait; but the regions record the timepoints of that work, so the next work on these regions waits for them.
//
// hpe does not order two pieces of the program's work, because the program itself orders the work on its streams.
#include "interpose/gpu/oversubscribed/oversubscribed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "interpose/gpu/oversubscribed/driver_result.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/core/operations/parts_in_time.h"
#include "runtime/core/runtime.h"
#include "runtime/trace/refusals.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

constinit std::atomic<oversubscribed*> oversubscribed::the_one{nullptr};

bool oversubscribed::wanted() noexcept {
  static const bool result = [] {
    try {
      return options::from_environment().oversubscribe == oversubscription::on;
    } catch (const std::exception& e) {
      log(log_level::warn, "--oversubscribe has no effect: {}", e.what());
      return false;
    }
  }();
  return result;
}

oversubscribed::oversubscribed(const device::cuda::driver& cu, core::runtime& hpe, const std::vector<CUdevice>& gpus)
    : cu_(cu),
      hpe_(hpe),
      freed_(hpe.devices().at(0).info().memory_bytes / 64),
      by_driver_(hpe.memory()),
      beside_(cu, hpe.devices()),
      copies_(cu, hpe, *this),
      parts_(cu) {
  for (unsigned d = 0; d < hpe.devices().size(); ++d) {
    CUdevice ordinal = 0;
    cu.check(cu.cuDeviceGet(&ordinal, static_cast<int>(d)), "finding a GPU");
    ordinals_.push_back(ordinal);
    all_.push_back(&dynamic_cast<const device::cuda::cuda_device&>(hpe.devices().at(d)));
    sequences_.emplace_back();
    if (hpe.devices().at(d).share() != nullptr) has_outgrown_ = true;
  }
  for (const CUdevice gpu : gpus)
    if (const auto number = number_of(gpu)) gpus_.push_back(*number);
  if (gpus_.size() < 2 || gpus_.size() != gpus.size()) return;
  planner_ =
      std::make_unique<core::launch_planner>(hpe.devices(), hpe.memory(), hpe.spread().copies_of_arrays(), gpus_, 0);
}

oversubscribed* oversubscribed::instance(const device::cuda::driver& cu, const std::vector<CUdevice>& gpus) {
  // Never destroyed, because threads of the program may call the driver until the process ends.
  static oversubscribed* const made = [&]() -> oversubscribed* {
    try {
      // Without --oversubscribe, the data of a spread program never leaves the GPUs, so hpe prepares no host memory for
      // this data.
      const auto adjust = [](options& chosen) {
        if (wanted()) return;
        chosen.oversubscribe = oversubscription::off;
        chosen.prepared_memory = 0;
      };
      auto* const result = new oversubscribed(cu, core::runtime::instance(adjust), gpus);
      the_one.store(result, std::memory_order_release);
      return result;
    } catch (const std::exception& e) {
      log(log_level::warn, "--oversubscribe has no effect, nor has --spread: {}", e.what());
      return nullptr;
    }
  }();
  return made;
}

oversubscribed* oversubscribed::spread_over(const device::cuda::driver& cu, const std::vector<CUdevice>& gpus) {
  oversubscribed* const made = instance(cu, gpus);
  if (made == nullptr || made->planner_ != nullptr) return made;
  log(log_level::warn, "--spread has no effect: hpe uses {} of the {} GPUs (HPE_DEVICES), or was started before",
      made->gpus_.size(), gpus.size());
  return nullptr;
}

// ---- memory ------------------------------------------------------------------------------------------------------

std::optional<unsigned> oversubscribed::number_of(CUdevice device) const {
  const auto found = std::ranges::find(ordinals_, device);
  return found != ordinals_.end() ? std::optional(static_cast<unsigned>(found - ordinals_.begin())) : std::nullopt;
}

CUresult oversubscribed::device_of(CUcontext context, std::optional<unsigned>& found) const {
  const auto primary =
      std::ranges::find(all_, context, [](const auto* device) { return device->context_if_started(); });
  if (primary != all_.end()) {
    found = static_cast<unsigned>(primary - all_.begin());
    return CUDA_SUCCESS;
  }
  if (cu_.cuCtxGetDevice == nullptr) return CUDA_SUCCESS;
  const entered here(cu_, context);
  CUdevice device = 0;
  const CUresult result = cu_.cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS) found = number_of(device);
  return result;
}

oversubscribed* oversubscribed::start(const device::cuda::driver& cu) {
  if (oversubscribed* const it = active()) return it;
  CUcontext context = nullptr;
  return cu.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr ? instance(cu, {}) : nullptr;
}

std::optional<CUresult> oversubscribed::allocate(const device::cuda::driver& cu, CUdeviceptr* made, std::size_t bytes) {
  if (made == nullptr || (active() == nullptr && (!wanted() || bytes < smallest))) return std::nullopt;
  CUcontext context = nullptr;
  if (const CUresult result = cu.cuCtxGetCurrent(&context); result != CUDA_SUCCESS) return result;
  oversubscribed* const it = context != nullptr ? start(cu) : nullptr;
  if (it == nullptr) return std::nullopt;
  std::optional<unsigned> device;
  if (const CUresult result = it->device_of(context, device); result != CUDA_SUCCESS) return result;
  if (!device || !it->takes(*device, bytes)) return std::nullopt;
  try {
    return it->allocate(*made, bytes, *device);
  } catch (const std::exception& e) {
    log(log_level::warn, "{} bytes cannot be allocated: {}", bytes, e.what());
    return result_of(e);
  }
}

CUresult oversubscribed::allocate(CUdeviceptr& made, std::size_t bytes, unsigned device) {
  core::allocator& from = hpe_.memory();
  freed_memory::list unnoted(1);  // allocated first, so that hpe can keep or free the memory if objects_.add() throws
  CUdeviceptr address = freed_.take(bytes, device);
  const auto make = [&] {
    // If data may leave the GPUs (--oversubscribe), it is distributed from the start, so that more of it fits in device
    // memory.
    using first_home = core::launch_planner::first_home;
    address = reinterpret_cast<CUdeviceptr>(
        is_spread(device) ? planner_->allocate(bytes, wanted() ? first_home::parts : first_home::one)
                          : from.allocate(bytes, device));
  };
  try {
    if (address == 0) make();
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || !give_back_freed()) throw;
    make();
  }
  try {
    objects_.add(address, bytes, device);
  } catch (...) {
    unnoted.front() = {address, bytes, device};
    give_back(std::move(unnoted));
    throw;
  }
  if (objects_.bytes_on(device) > from.most_of(device)) outgrow();
  made = address;
  return CUDA_SUCCESS;
}

bool oversubscribed::give_back_freed() noexcept { return give_back(freed_.take_all()); }

// If hpe cannot release an allocation, because host memory is too short, the allocation returns to the list of freed
// memory until the next call.
bool oversubscribed::give_back(freed_memory::list&& freed) noexcept {
  bool any = false;
  for (auto each = freed.begin(); each != freed.end();) {
    try {
      if (planner_ != nullptr) planner_->forget(pointer(each->base));
      try_twice([&] { hpe_.memory().free(pointer(each->base)); });
      each = freed.erase(each);
      any = true;
    } catch (const std::exception& e) {
      log(log_level::warn, "memory cannot be freed now: {}", e.what());
      ++each;
    }
  }
  freed_.put_back(std::move(freed));
  return any;
}

std::optional<CUresult> oversubscribed::free(CUdeviceptr address) {
  program_objects::removed object = objects_.remove(address);
  if (object.empty()) return std::nullopt;
  try {
    freed_memory::list freed{object.mapped()};
    hpe_.spread().copies_of_arrays().forget(pointer(address));
    hpe_.memory().await_users(pointer(address));
    give_back(freed_.keep(std::move(freed)));
    return CUDA_SUCCESS;
  } catch (const std::exception& e) {
    objects_.put_back(std::move(object));  // if freeing fails, the memory is unchanged
    log(log_level::warn, "memory cannot be freed: {}", e.what());
    return result_of(e);
  }
}

CUresult oversubscribed::free_all(CUdevice device, function_ref<void(CUdeviceptr)> frees_other) {
  CUcontext context = nullptr;
  if (const CUresult found = cu_.cuDevicePrimaryCtxRetain(&context, device); found != CUDA_SUCCESS) return found;
  CUresult waited = CUDA_SUCCESS;
  {
    const entered here(cu_, context);
    waited = cu_.cuCtxSynchronize();
  }
  cu_.cuDevicePrimaryCtxRelease(device);
  if (const auto number = number_of(device))
    for (const program_object& object : objects_.on(*number)) (void)free(object.base);
  if (cu_.cuMemFree != nullptr)
    by_driver_.end(context, [&](CUdeviceptr address) {
      frees_other(address);
      cu_.cuMemFree(address);
    });
  give_back_freed();
  return waited;
}

std::optional<device::memory_usage> oversubscribed::memory() const {
  CUcontext context = nullptr;
  if (cu_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return std::nullopt;
  std::optional<unsigned> device;
  if (device_of(context, device) != CUDA_SUCCESS || !device) return std::nullopt;
  device::memory_usage all;
  all.free = freed_.bytes_on(*device);
  for (const unsigned each : is_spread(*device) ? gpus_ : std::vector<unsigned>{*device}) try {
      const device::memory_usage own = hpe_.devices().at(each).memory();
      all.total += own.total;
      all.free += own.free;
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_INITIALIZATION) throw;
      log(log_level::info, "its memory does not count: {}", e.what());
    }
  if (wanted())
    all.free = all.total - std::min(all.total, objects_.bytes_on(*device) + hpe_.memory().withheld(*device));
  return all;
}

// ---- work --------------------------------------------------------------------------------------------------------

program_use oversubscribed::use_of(const parameter_words& found, bool follows_pointers) const {
  program_use result;
  result.unsure = true;
  result.everything = !found || (follows_pointers && !may_use_zero_copy());
  result.follows_pointers = follows_pointers && !result.everything;
  if (result.everything) return result;
  for (const program_object& object : objects_.find_all(*found)) result.add(object, HPE_INOUT);
  return result;
}

bool oversubscribed::may_evict() const {
  return has_outgrown_.load(std::memory_order_relaxed) ||
         hpe_.count().bytes_evicted.load(std::memory_order_relaxed) != 0;
}

bool oversubscribed::may_own(CUdeviceptr address) const { return hpe_.memory().is_in_space(pointer(address)); }

program_use oversubscribed::use_of(std::span<const accessed_range> ranges) const {
  program_use result;
  for (const accessed_range& each : ranges)
    if (const auto object = objects_.find(each.address); object && each.bytes != 0)
      result.accesses.push_back({pointer(each.address),
                                 std::min<std::size_t>(each.bytes, object->base + object->bytes - each.address),
                                 each.mode});
  return result;
}

CUresult oversubscribed::find_place(CUstream stream, std::optional<stream_place>& found) const {
  stream_place result;
  const bool is_default = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  CUresult told = is_default ? cu_.cuCtxGetCurrent(&result.context) : cu_.cuStreamGetCtx(stream, &result.context);
  if (told == CUDA_SUCCESS && result.context == nullptr) told = CUDA_ERROR_INVALID_CONTEXT;
  std::optional<unsigned> device;
  if (told == CUDA_SUCCESS) told = device_of(result.context, device);
  if (told != CUDA_SUCCESS || !device) return told;
  result.device = *device;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream != nullptr) told = cu_.cuStreamIsCapturing(stream, &status);
  // The driver returns this error if it is asked about the legacy stream while another stream is captured; the legacy
  // stream itself is never captured.
  if (told == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) told = CUDA_SUCCESS;
  result.captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  if (told == CUDA_SUCCESS) found = result;
  return told;
}

// Captured work does not run on its stream, and CU_STREAM_PER_THREAD means a different stream in each thread. In these
// cases, an hpe stream cannot represent exactly one stream of the program.
beside_streams::stand_in oversubscribed::beside_of(const stream_place& where, CUstream stream) {
  if (where.captured) return beside_.of(where.device, nullptr, false);
  const bool is_own =
      stream != nullptr && stream != CU_STREAM_PER_THREAD && where.context == all_[where.device]->context();
  return beside_.of(where.device, stream, is_own);
}

CUresult oversubscribed::between_streams(const beside_streams::stand_in& beside, CUstream hpe_stream, bool waits,
                                         CUstream stream, CUcontext context, openness how,
                                         function_ref<CUresult()> queue) {
  CUcontext of_hpe = nullptr;
  cu_.cuCtxGetCurrent(&of_hpe);
  CUresult ready = CUDA_SUCCESS;
  if (waits)
    ready =
        stream == nullptr ? cu_.cuStreamSynchronize(hpe_stream) : beside_.follow(stream, context, hpe_stream, of_hpe);
  if (ready != CUDA_SUCCESS) return ready;
  {
    // Most programs use the primary context, which hpe uses too. In this case, the current context need not be changed.
    std::optional<entered> programs;
    if (of_hpe != context) programs.emplace(cu_, context);
    if (const CUresult queued = queue(); queued != CUDA_SUCCESS) return queued;
    if (stream == nullptr) return cu_.cuCtxSynchronize();
  }
  if (beside.ends_there != nullptr) {
    // If hpe evicts data, await_room() must know how much work is unfinished. During a capture, hpe could not record
    // the event of an open command.
    beside.ends_there->ends_on(stream, (wanted() && may_evict()) || captures.load() != 0 ? openness::none : how);
    return CUDA_SUCCESS;
  }
  // If the hpe stream cannot wait for the program's stream, this thread waits for the program's stream.
  if (beside_.follow(hpe_stream, of_hpe, stream, context) == CUDA_SUCCESS) return CUDA_SUCCESS;
  const entered programs(cu_, context);
  return cu_.cuStreamSynchronize(stream);
}

CUresult oversubscribed::run(CUstream stream, const program_use& use, function_ref<CUresult()> queue) {
  if (use.none()) return queue();
  std::optional<stream_place> where;
  if (const CUresult result = find_place(stream, where); result != CUDA_SUCCESS) return result;
  return where ? run(*where, stream, use, queue) : queue();
}

CUresult oversubscribed::look(const program_use& use, function_ref<CUresult()> call) {
  if (use.none()) return call();
  std::optional<stream_place> where;
  if (const CUresult result = find_place(nullptr, where); result != CUDA_SUCCESS) return result;
  if (!where) return call();
  where->captured = true;
  return run(*where, nullptr, use, call);
}

CUresult oversubscribed::run(const stream_place& where, CUstream stream, const program_use& use,
                             function_ref<CUresult()> queue) try {
  try {
    return try_run(where, stream, use, queue);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    return run_with_zero_copy(use, e.what(),
                              [&](const program_use& its) { return try_run(where, stream, its, queue); });
  }
} catch (const std::exception& e) {
  return refused(e);
}

CUresult oversubscribed::run_with_zero_copy(program_use use, const std::string& refusal,
                                            function_ref<CUresult(const program_use&)> try_to_run) {
  HPE_REQUIRE(zero_copy_, HPE_ERROR_OUT_OF_MEMORY, "{}", refusal);
  use.zero_copy = true;
  try {
    const CUresult result = try_to_run(use);
    if (result == CUDA_SUCCESS && !refusal.empty()) core::tell_of_zero_copy(refusal);
    return result;
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    HPE_REQUIRE(!refusal.starts_with(e.what()), HPE_ERROR_OUT_OF_MEMORY, "{}", refusal);
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{}; {}", refusal, e.what());
  }
}

CUresult oversubscribed::try_run(const stream_place& where, CUstream stream, const program_use& use,
                                 function_ref<CUresult()> queue, repeatable* again) {
  // Copies before the work is queued, because lack of host memory must not make the program's call fail afterwards.
  if (again != nullptr) {
    again->on = {};
    again->use = use;
    again->uses_nothing = use.none();
  }
  if (use.none()) return queue();
  const beside_streams::stand_in beside = beside_of(where, stream);
  core::queued_beside work;
  const CUresult result = submit(where, beside, stream, use, queue, work);
  if (again != nullptr && work.settled_at != 0) {
    again->where = where;
    again->on = beside;
    again->work = std::move(work);
  }
  return result;
}

CUresult oversubscribed::submit(const stream_place& where, const beside_streams::stand_in& beside, CUstream stream,
                                const program_use& use, function_ref<CUresult()> queue, core::queued_beside& work) {
  const std::shared_lock whole(sequences_.at(where.device));
  CUresult result = CUDA_SUCCESS;
  try {
    // During a capture, the driver only checks the work's addresses and records the work. The work runs when the
    // program launches the graph.
    const auto queue_between = [&](void* hpe_stream, bool waits) {
      if (where.captured) {
        const entered programs(cu_, where.context);
        result = queue();
      } else {
        // A thread that waits for work that may use any memory waits for all work of this kind. So waits for a part of
        // this work are not needed.
        const openness how = use.everything ? openness::lasting : openness::until_divided;
        result = between_streams(beside, static_cast<CUstream>(hpe_stream), waits, stream, where.context, how, queue);
      }
      return static_cast<int>(result);
    };
    const auto enqueue = [&] {
      hpe_.kernels().enqueue_beside(where.device, *beside.stream, queue_between,
                                    {.accesses = use.everything ? std::span<const hpeAccess>() : use.accesses,
                                     .rows = use.rows,
                                     .in_reach = use.everything || use.follows_pointers,
                                     .only_mapped = use.follows_pointers,
                                     .unsure = use.unsure,
                                     .concurrent = true,
                                     .zero_copy = use.zero_copy},
                                    work);
    };
    try {
      enqueue();
    } catch (const error& e) {
      if (result != CUDA_SUCCESS || e.status() != HPE_ERROR_OUT_OF_MEMORY || !give_back_freed()) throw;
      enqueue();
    }
    return result;
  } catch (const std::exception&) {
    if (result != CUDA_SUCCESS) return result;
    throw;
  }
}

std::optional<CUresult> oversubscribed::repeat(repeatable& earlier, CUstream stream, function_ref<CUresult()> queue) {
  if (earlier.uses_nothing) return queue();
  if (earlier.on.ends_there == nullptr || hpe_.kernels().epoch() != earlier.work.settled_at) return std::nullopt;
  CUcontext current = earlier.where.context;
  if (stream == CU_STREAM_LEGACY) cu_.cuCtxGetCurrent(&current);
  if (current != earlier.where.context) return std::nullopt;
  CUresult result = CUDA_SUCCESS;
  if (earlier.on.ends_there->join(earlier.work.end.value, [&] { result = queue(); })) return result;
  // In the meantime, the handle may have become the handle of another stream, and a capture of the stream may have
  // begun. The legacy stream is never captured.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream != CU_STREAM_LEGACY && cu_.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) return std::nullopt;
  const beside_streams::stand_in on = std::exchange(earlier.on, {});
  if (status != CU_STREAM_CAPTURE_STATUS_NONE || beside_.own_of(earlier.where.device, stream).chosen != on.chosen)
    return std::nullopt;
  try {
    result = submit(earlier.where, on, stream, earlier.use, queue, earlier.work);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    return std::nullopt;
  }
  if (earlier.work.settled_at != 0) earlier.on = on;
  return result;
}

CUresult oversubscribed::run_parts(const stream_place& where, CUstream stream, std::span<const unsigned> others,
                                   const program_use& use, function_ref<CUresult(unsigned, CUstream)> queue) {
  const std::shared_lock whole(sequences_.at(where.device));
  return queue_parts(where, stream, others, use, queue);
}

CUresult oversubscribed::queue_parts(const stream_place& where, CUstream stream, std::span<const unsigned> others,
                                     const program_use& use, function_ref<CUresult(unsigned, CUstream)> queue) {
  CUresult result = CUDA_SUCCESS;
  try {
    std::vector<core::beside_part> parts;
    for (const unsigned n : others) parts.push_back({gpus_[n], beside_.of(gpus_[n], stream, false).stream});
    const beside_streams::stand_in beside = beside_of(where, stream);
    parts.push_back({where.device, beside.stream});
    std::vector<std::pair<CUcontext, CUstream>> queued;
    queued.reserve(others.size());
    const auto queue_on_other = [&](unsigned n, CUstream own) {
      CUcontext here = nullptr;
      cu_.cuCtxGetCurrent(&here);
      if (const CUresult follows = beside_.follow(own, here, stream, where.context); follows != CUDA_SUCCESS)
        return follows;
      const unfinished_parts::queuing its(parts_, here, own);
      queued.emplace_back(here, own);
      return queue(n, own);
    };
    const auto queue_own = [&] {
      CUresult own = queue(0, stream);
      for (const auto& [context, part] : queued)
        if (const CUresult follows = beside_.follow(stream, where.context, part, context); own == CUDA_SUCCESS)
          own = follows;
      return own;
    };
    const auto work = [&](std::size_t n, void* hpe_stream, bool waits) {
      auto* const own = static_cast<CUstream>(hpe_stream);
      result = n < others.size()
                   ? queue_on_other(others[n], own)
                   : between_streams(beside, own, waits, stream, where.context, openness::until_divided, queue_own);
      return static_cast<int>(result);
    };
    hpe_.kernels().enqueue_parts_beside(
        parts, work, {.accesses = use.accesses, .rows = use.rows, .concurrent = true, .zero_copy = use.zero_copy});
    return result;
  } catch (const std::exception&) {
    if (result != CUDA_SUCCESS) return result;
    throw;
  }
}

bool oversubscribed::have_host_atomics() const {
  return std::ranges::all_of(gpus_, [&](unsigned n) { return hpe_.devices().at(n).info().has_host_atomics; });
}

const core::allocator& oversubscribed::allocations() const noexcept { return hpe_.memory(); }

std::vector<core::part_in_time> oversubscribed::cut_in_time(const spread::kernel_model& kernel,
                                                            const spread::launch& launch, unsigned count,
                                                            const std::string& obstacle, const std::string& refusal) {
  return core::cut_in_time(hpe_.memory(), kernel, launch, count, {}, obstacle, refusal);
}

// Logs only the first refusal as a warning, because a program that ignores the error may cause thousands of refusals.
CUresult oversubscribed::refused(const std::exception& e) noexcept {
  const bool first = trace::refusals::add();
  log(first ? log_level::warn : log_level::info, "the program's work cannot be queued: {}", e.what());
  return result_of(e);
}

}  // namespace hpe::cuda_hooks
