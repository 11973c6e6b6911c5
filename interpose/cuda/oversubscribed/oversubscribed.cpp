// Invariants:
//  - A stream of hpe stands for one stream of the program (or, if there are many, for several): before it goes on, it
//  waits
//    for all work that run() has queued there. So its timepoints say when the program's work is done.
//  - The program's stream has waited for all that its stream of hpe has waited for, unless queuing failed; then those
//  points
//    are still in the order of the regions, and the next work waits for them.
//  - Pieces of work are not ordered against each other, because the program orders its streams itself.
#include "interpose/cuda/oversubscribed/oversubscribed.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/core/runtime.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's are numbers
}

CUresult result_of(const error& e) {
  switch (e.status()) {
    case HPE_ERROR_OUT_OF_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
    case HPE_ERROR_DEVICE_LOST: return CUDA_ERROR_LAUNCH_FAILED;
    case HPE_ERROR_NOT_A_REGION: return CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace

constinit std::atomic<oversubscribed*> oversubscribed::the_one{nullptr};

bool oversubscribed::wanted() noexcept {
  // The option's default is for programs of hpe; CUDA programs expect full devices to refuse.
  static const bool result = [] {
    const char* const value = std::getenv("HPE_OVERSUBSCRIBE");  // NOLINT(concurrency-mt-unsafe): read once
    return value != nullptr && std::string_view(value) == "on";
  }();
  return result;
}

oversubscribed::oversubscribed(const device::cuda::driver& cu, core::runtime& hpe) : cu_(cu), hpe_(hpe) {}

oversubscribed* oversubscribed::instance(const device::cuda::driver& cu) {
  // Never destroyed, because threads of the program may call until the process ends.
  static oversubscribed* const made = [&]() -> oversubscribed* {
    try {
      auto* const result = new oversubscribed(cu, core::runtime::instance());
      the_one.store(result, std::memory_order_release);
      return result;
    } catch (const error& e) {
      log(log_level::warn, "--oversubscribe has no effect: {}", e.what());
      return nullptr;
    }
  }();
  return made;
}

// ---- memory ------------------------------------------------------------------------------------------------------

std::optional<unsigned> oversubscribed::number_of(CUdevice device) const {
  for (unsigned d = 0; d < hpe_.devices().size(); ++d)
    if (CUdevice each = 0; cu_.cuDeviceGet(&each, static_cast<int>(d)) == CUDA_SUCCESS && each == device) return d;
  return std::nullopt;
}

std::optional<unsigned> oversubscribed::device_of(CUcontext context) const {
  const entered here(cu_, context);
  CUdevice device = 0;
  if (cu_.cuCtxGetDevice == nullptr || cu_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return std::nullopt;
  return number_of(device);
}

std::optional<CUresult> oversubscribed::allocate(const device::cuda::driver& cu, CUdeviceptr* made, std::size_t bytes) {
  if (!wanted() || made == nullptr || bytes < smallest) return std::nullopt;
  CUcontext context = nullptr;
  if (cu.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return std::nullopt;
  oversubscribed* const it = instance(cu);
  if (it == nullptr) return std::nullopt;
  try {
    const auto device = it->device_of(context);
    if (!device) return std::nullopt;
    *made = reinterpret_cast<CUdeviceptr>(it->hpe_.memory().allocate(bytes, *device));
    it->objects_.add(*made, bytes, *device);
    return CUDA_SUCCESS;
  } catch (const error& e) {
    log(log_level::warn, "{} bytes cannot be allocated: {}", bytes, e.what());
    return result_of(e);
  }
}

std::optional<CUresult> oversubscribed::free(CUdeviceptr address) {
  if (!objects_.remove(address)) return std::nullopt;
  try {
    hpe_.memory().free(pointer(address));
    return CUDA_SUCCESS;
  } catch (const error& e) {
    log(log_level::warn, "memory cannot be freed: {}", e.what());
    return result_of(e);
  }
}

CUresult oversubscribed::free_all(CUdevice device) {
  CUcontext context = nullptr;
  if (const CUresult found = cu_.cuDevicePrimaryCtxRetain(&context, device); found != CUDA_SUCCESS) return found;
  CUresult waited = CUDA_SUCCESS;
  {
    const entered here(cu_, context);
    waited = cu_.cuCtxSynchronize();
  }
  cu_.cuDevicePrimaryCtxRelease(device);
  if (const auto number = number_of(device))
    for (const movable_object& object : objects_.on(*number)) (void)free(object.base);
  return waited;
}

std::optional<oversubscribed::amounts> oversubscribed::memory() const {
  CUcontext context = nullptr;
  if (cu_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return std::nullopt;
  const auto device = device_of(context);
  if (!device) return std::nullopt;
  const std::size_t total = hpe_.devices().at(*device).memory().total;
  return amounts{total - std::min(total, objects_.bytes_on(*device)), total};
}

CUcontext oversubscribed::context_of(const movable_object& object) const {
  CUdevice device = 0;
  CUcontext result = nullptr;
  if (cu_.cuDeviceGet(&device, static_cast<int>(object.device)) != CUDA_SUCCESS ||
      cu_.cuDevicePrimaryCtxRetain(&result, device) != CUDA_SUCCESS)
    return nullptr;
  cu_.cuDevicePrimaryCtxRelease(device);  // hpe's runtime keeps it
  return result;
}

bool oversubscribed::is_in_host_memory(CUdeviceptr address) const {
  unsigned type = 0;
  return cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
         type != CU_MEMORYTYPE_DEVICE;
}

// ---- work --------------------------------------------------------------------------------------------------------

movable_use oversubscribed::use_of(const std::optional<std::vector<CUdeviceptr>>& parameters) const {
  if (!parameters) return {true, {}};
  movable_use result;
  for (const movable_object& object : objects_.find_all(*parameters))
    result.accesses.push_back({pointer(object.base), object.bytes, HPE_INOUT});
  return result;
}

movable_use oversubscribed::use_of(std::span<const range> ranges) const {
  movable_use result;
  for (const range& each : ranges)
    if (const auto object = objects_.find(each.address); object && each.bytes != 0)
      result.accesses.push_back({pointer(each.address),
                                 std::min<std::size_t>(each.bytes, object->base + object->bytes - each.address),
                                 each.mode});
  return result;
}

std::optional<oversubscribed::place> oversubscribed::place_of(CUstream stream) const {
  place result;
  const bool is_default = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  const CUresult found =
      is_default ? cu_.cuCtxGetCurrent(&result.context) : cu_.cuStreamGetCtx(stream, &result.context);
  if (found != CUDA_SUCCESS || result.context == nullptr) return std::nullopt;
  const auto device = device_of(result.context);
  if (!device) return std::nullopt;
  result.device = *device;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream != nullptr && cu_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS)
    result.captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  return result;
}

device::stream& oversubscribed::beside(unsigned device, CUstream stream) {
  const lock_guard lock(mutex_);
  device::stream*& found = beside_[{device, stream}];
  if (found != nullptr) return *found;
  auto& all = streams_[device];
  if (all.size() < most_streams) {
    all.push_back(&hpe_.devices().at(device).create_stream(device::priority::launch));
    return *(found = all.back());
  }
  return *(found = all[beside_.size() % most_streams]);
}

CUresult oversubscribed::follow(CUstream later, CUcontext of_later, CUstream earlier, CUcontext of_earlier) const {
  CUevent between = nullptr;
  {
    const entered here(cu_, of_earlier);
    if (const CUresult made = cu_.cuEventCreate(&between, CU_EVENT_DISABLE_TIMING); made != CUDA_SUCCESS) return made;
    if (const CUresult recorded = cu_.cuEventRecord(between, earlier); recorded != CUDA_SUCCESS) {
      cu_.cuEventDestroy(between);
      return recorded;
    }
  }
  const entered here(cu_, of_later);
  const CUresult waits = cu_.cuStreamWaitEvent(later, between, 0);
  cu_.cuEventDestroy(between);
  return waits;
}

CUresult oversubscribed::between_streams(CUstream hpe_stream, bool waits, CUstream stream, CUcontext context,
                                         const std::function<CUresult()>& queue) const {
  CUcontext of_hpe = nullptr;
  cu_.cuCtxGetCurrent(&of_hpe);
  CUresult ready = CUDA_SUCCESS;
  if (waits)
    ready = stream == nullptr ? cu_.cuStreamSynchronize(hpe_stream) : follow(stream, context, hpe_stream, of_hpe);
  if (ready != CUDA_SUCCESS) return ready;
  {
    const entered programs(cu_, context);
    if (const CUresult queued = queue(); queued != CUDA_SUCCESS) return queued;
    if (stream == nullptr) return cu_.cuCtxSynchronize();
  }
  // If hpe's stream cannot wait, this thread does.
  if (follow(hpe_stream, of_hpe, stream, context) == CUDA_SUCCESS) return CUDA_SUCCESS;
  const entered programs(cu_, context);
  return cu_.cuStreamSynchronize(stream);
}

CUresult oversubscribed::run(CUstream stream, const movable_use& use, const std::function<CUresult()>& queue) {
  if (use.none()) return queue();
  const auto where = place_of(stream);
  return where ? run(*where, stream, use, queue) : queue();  // the driver says why that is wrong
}

CUresult oversubscribed::look(const movable_use& use, const std::function<CUresult()>& call) {
  auto where = use.none() ? std::nullopt : place_of(nullptr);
  if (!where) return call();
  where->captured = true;
  return run(*where, nullptr, use, call);
}

CUresult oversubscribed::run(const place& where, CUstream stream, const movable_use& use,
                             const std::function<CUresult()>& queue) {
  CUresult result = CUDA_SUCCESS;
  try {
    // A capture only records the work, which may run at any time later; the driver checks its addresses now.
    const auto work = [&](void* hpe_stream, bool waits) {
      if (where.captured) {
        const entered programs(cu_, where.context);
        result = queue();
      } else {
        result = between_streams(static_cast<CUstream>(hpe_stream), waits, stream, where.context, queue);
      }
      return static_cast<int>(result);
    };
    hpe_.kernels().enqueue_beside(where.device, beside(where.device, stream), work,
                                  {.accesses = use.everything ? std::span<const hpeAccess>() : use.accesses,
                                   .in_reach = use.everything,
                                   .concurrent = true});
    return result;
  } catch (const error& e) {
    if (result != CUDA_SUCCESS) return result;
    // A program that goes on may get the same answer thousands of times.
    const bool first = !told_.exchange(true, std::memory_order_relaxed);
    log(first ? log_level::warn : log_level::info, "the program's work cannot be queued: {}", e.what());
    return result_of(e);
  }
}

std::size_t oversubscribed::bytes_of_part(unsigned device) const {
  constexpr std::size_t best = std::size_t{32} << 20;
  constexpr std::size_t least = std::size_t{2} << 20;
  constexpr std::size_t unit = 512;
  return std::clamp(hpe_.devices().at(device).memory().total / 8, least, best) / unit * unit;
}

CUresult oversubscribed::in_parts(unsigned device, std::size_t bytes, std::size_t unit,
                                  const std::function<CUresult(std::size_t, std::size_t)>& part) const {
  const std::size_t most = bytes_of_part(device) / unit * unit;
  for (std::size_t at = 0; at < bytes; at += most)
    if (const CUresult result = part(at, std::min(most, bytes - at)); result != CUDA_SUCCESS) return result;
  return CUDA_SUCCESS;
}

std::optional<CUresult> oversubscribed::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                                             bool waits,
                                             const std::function<CUresult(std::size_t, std::size_t)>& piece) {
  const auto target = objects_.find(to);
  const auto source = objects_.find(from);
  if (bytes == 0 || (!target && !source)) return std::nullopt;
  const auto leaves = [&](const auto& object, CUdeviceptr at) {
    return object && bytes > object->base + object->bytes - at;
  };
  if (leaves(target, to) || leaves(source, from)) return CUDA_ERROR_INVALID_VALUE;
  const auto where = place_of(stream);
  if (waits && where && !where->captured && !(target && source) && is_in_host_memory(target ? from : to)) {
    // Data that is in host memory need not come to the device for this.
    if (const CUresult before = cu_.cuStreamSynchronize(stream); before != CUDA_SUCCESS) return before;
    try {
      hpe_.copies().copy_for_program(pointer(to), pointer(from), bytes);
      return CUDA_SUCCESS;
    } catch (const error& e) {
      log(log_level::warn, "a copy of {} bytes failed: {}", bytes, e.what());
      return result_of(e);
    }
  }
  const CUresult queued = in_parts((target ? target : source)->device, bytes, 1, [&](std::size_t at, std::size_t part) {
    return run(stream, use_of(std::array{range{from + at, part, HPE_IN}, range{to + at, part, HPE_OUT}}),
               [&] { return piece(at, part); });
  });
  return queued == CUDA_SUCCESS && waits ? cu_.cuStreamSynchronize(stream) : queued;
}

std::optional<CUresult> oversubscribed::overwrite(CUdeviceptr to, std::size_t bytes, std::size_t unit, CUstream stream,
                                                  const std::function<CUresult(std::size_t, std::size_t)>& piece) {
  const auto target = objects_.find(to);
  if (bytes == 0 || !target) return std::nullopt;
  if (bytes > target->base + target->bytes - to) return CUDA_ERROR_INVALID_VALUE;
  return in_parts(target->device, bytes, unit, [&](std::size_t at, std::size_t part) {
    return run(stream, use_of(std::array{range{to + at, part, HPE_OUT}}), [&] { return piece(at, part); });
  });
}

std::optional<CUresult> oversubscribed::use_box(const std::optional<box_place>& to,
                                                const std::optional<box_place>& from, const box_part& whole,
                                                CUstream stream,
                                                const std::function<CUresult(const box_part&)>& piece) {
  const auto object_at = [&](const auto& place) { return place ? objects_.find(place->base) : std::nullopt; };
  const auto target = object_at(to), source = object_at(from);
  if (whole.is_empty() || (!target && !source)) return std::nullopt;
  const auto leaves = [&](const auto& object, const auto& place) {
    return object && extent_of(*place, whole) > object->base + object->bytes - place->base;
  };
  if (leaves(target, to) || leaves(source, from)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<box_place> places;  // the size at other places does not matter
  if (target) places.push_back(*to);
  if (source) places.push_back(*from);
  const auto range_of = [](const box_place& place, const box_part& part, hpeAccessMode mode) {
    return range{begin_of(place, part), extent_of(place, part), mode};
  };
  return for_each_part(places, whole, bytes_of_part((target ? target : source)->device), [&](const box_part& part) {
    // The gaps between rows keep their bytes.
    const bool has_gaps = target && extent_of(*to, part) != part.width * part.height * part.depth;
    return run(stream,
               use_of(std::array{from ? range_of(*from, part, HPE_IN) : range(),
                                 to ? range_of(*to, part, has_gaps ? HPE_INOUT : HPE_OUT) : range()}),
               [&] { return piece(part); });
  });
}

}  // namespace hpe::cuda_hooks
