// The functions that give advice about managed memory, query this advice, and prefetch managed memory. On soft devices,
// advice and prefetches are only hints: hpe moves data to the device that uses it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/memory/managed_advice.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"

using namespace hpe::cudart;

namespace {

static_assert(at_the_host == cudaCpuDeviceId && nowhere == cudaInvalidDeviceId && at_the_host == HPE_HOST);

cudart_allocation find_managed(const void* address, std::size_t bytes) {
  const auto found = process().memory().find(address);
  require(found.has_value() && found->is_managed() && bytes > 0 && found->holds(address, bytes), cudaErrorInvalidValue);
  return *found;
}

/// Returns the device of a location, or at_the_host for a location on the host. Throws cudaErrorInvalidDevice.
int place_of(const cudaMemLocation& location) {
  if (location.type != cudaMemLocationTypeDevice) return at_the_host;
  process().devices().require_device(location.id);
  return location.id;
}

std::uint32_t bit_of(int place) { return place == at_the_host ? 1U << 31 : 1U << place; }

void advise(const cudart_allocation& whole, const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
            int place) {
  const auto change = [&](const auto& how) { process().advice().change(whole, pointer, bytes, how); };
  switch (advice) {
    case cudaMemAdviseSetReadMostly:
      check(::hpeAdvise(whole.base, HPE_ADVISE_READ_MOSTLY));
      return change([](page_advice& each) { each.read_mostly = true; });
    case cudaMemAdviseUnsetReadMostly:
      check(::hpeAdvise(whole.base, HPE_ADVISE_DEFAULT));
      return change([](page_advice& each) { each.read_mostly = false; });
    case cudaMemAdviseSetPreferredLocation: return change([&](page_advice& each) { each.preferred = place; });
    case cudaMemAdviseUnsetPreferredLocation: return change([](page_advice& each) { each.preferred = nowhere; });
    case cudaMemAdviseSetAccessedBy: return change([&](page_advice& each) { each.accessed_by |= bit_of(place); });
    case cudaMemAdviseUnsetAccessedBy: return change([&](page_advice& each) { each.accessed_by &= ~bit_of(place); });
    default: throw failure(cudaErrorInvalidValue);
  }
}

cudaError_t prefetch(const void* pointer, std::size_t bytes, const cudaMemLocation& location, cudaStream_t stream) {
  const cudart_allocation whole = find_managed(pointer, bytes);
  const int where = place_of(location);
  const auto queue = process().find_stream(stream);
  require_not_capturing(*queue);
  process().advice().change(whole, pointer, bytes, [&](page_advice& each) { each.prefetched = where; });
  return queue->enqueue([pointer, bytes, where] {
    ::hpePrefetch(pointer, bytes, where);  // a hint, so a failure is ignored
    return cudaSuccess;
  });
}

/// Throws cudaErrorInvalidValue unless all ranges are in managed memory.
void require_ranges(void** pointers, const std::size_t* bytes, std::size_t count, unsigned long long flags) {
  require(pointers != nullptr && bytes != nullptr && count > 0 && flags == 0, cudaErrorInvalidValue);
  for (std::size_t i = 0; i < count; ++i) find_managed(pointers[i], bytes[i]);
}

/// Prefetches the ranges. locations[i] applies to the ranges firsts[i] to firsts[i + 1] - 1.
void prefetch_all(void** pointers, const std::size_t* bytes, std::size_t count, const cudaMemLocation* locations,
                  const std::size_t* firsts, std::size_t location_count, cudaStream_t stream) {
  require(locations != nullptr && firsts != nullptr && location_count > 0 && location_count <= count && firsts[0] == 0,
          cudaErrorInvalidValue);
  require(std::is_sorted(firsts, firsts + location_count) && firsts[location_count - 1] < count, cudaErrorInvalidValue);
  for (std::size_t i = 0; i < count; ++i) {
    const auto which = std::upper_bound(firsts, firsts + location_count, i) - firsts - 1;
    check(prefetch(pointers[i], bytes[i], locations[which], stream));
  }
}

/// Returns choice(part) if it is the same for all parts; otherwise `otherwise`.
template <class Choice>
int common(const std::vector<page_advice>& parts, const Choice& choice, int otherwise) {
  const int first = choice(parts.front());
  return std::all_of(parts.begin(), parts.end(), [&](const auto& each) { return choice(each) == first; }) ? first
                                                                                                          : otherwise;
}

cudaMemLocationType type_of(int place) {
  if (place == nowhere) return cudaMemLocationTypeInvalid;
  return place == at_the_host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
}

void tell_accessed_by(const std::vector<page_advice>& parts, int* out, std::size_t count) {
  std::uint32_t by_all = ~0U;
  for (const page_advice& each : parts) by_all &= each.accessed_by;
  std::fill_n(out, count, nowhere);
  const int devices = process().devices().count();
  for (int place = at_the_host; place < devices && count > 0; ++place) {
    if ((by_all & bit_of(place)) == 0) continue;
    *out++ = place;
    --count;
  }
}

void tell(void* data, std::size_t size, cudaMemRangeAttribute attribute, const void* pointer, std::size_t bytes) {
  const cudart_allocation whole = find_managed(pointer, bytes);
  require(data != nullptr && size > 0 && size % sizeof(int) == 0, cudaErrorInvalidValue);
  const std::vector<page_advice> parts = process().advice().of(whole, pointer, bytes);
  auto* const out = static_cast<int*>(data);
  if (attribute == cudaMemRangeAttributeAccessedBy) return tell_accessed_by(parts, out, size / sizeof(int));
  require(size == sizeof(int), cudaErrorInvalidValue);
  const int preferred = common(
      parts, [](const page_advice& each) { return each.preferred; }, nowhere);
  const int prefetched = common(
      parts, [](const page_advice& each) { return each.prefetched; }, nowhere);
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
      *out = common(
          parts, [](const page_advice& each) { return each.read_mostly ? 1 : 0; }, 0);
      break;
    case cudaMemRangeAttributePreferredLocation: *out = preferred; break;
    case cudaMemRangeAttributeLastPrefetchLocation: *out = prefetched; break;
    case cudaMemRangeAttributePreferredLocationType: *out = type_of(preferred); break;
    case cudaMemRangeAttributeLastPrefetchLocationType: *out = type_of(prefetched); break;
    // The number of a location is defined only if the location's type is a device; in all other cases, it is 0.
    case cudaMemRangeAttributePreferredLocationId: *out = std::max(preferred, 0); break;
    case cudaMemRangeAttributeLastPrefetchLocationId: *out = std::max(prefetched, 0); break;
    default: throw failure(cudaErrorInvalidValue);
  }
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice,
                                    cudaMemLocation location) {
  return api_call("cudaMemAdvise", [&] {
    const cudart_allocation whole = find_managed(pointer, bytes);
    const bool has_place = advice == cudaMemAdviseSetPreferredLocation || advice == cudaMemAdviseSetAccessedBy ||
                           advice == cudaMemAdviseUnsetAccessedBy;
    advise(whole, pointer, bytes, advice, has_place ? place_of(location) : nowhere);
  });
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cudaMemLocation location,
                                           unsigned flags, cudaStream_t stream) {
  return api_call("cudaMemPrefetchAsync", [&] {
    require(flags == 0, cudaErrorInvalidValue);
    return prefetch(pointer, bytes, location, stream);
  });
}

cudaError_t CUDARTAPI cudaMemPrefetchBatchAsync(void** pointers, std::size_t* bytes, std::size_t count,
                                                cudaMemLocation* locations, std::size_t* firsts,
                                                std::size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
  return api_call("cudaMemPrefetchBatchAsync", [&] {
    require_ranges(pointers, bytes, count, flags);
    prefetch_all(pointers, bytes, count, locations, firsts, location_count, stream);
  });
}

/// Checks the ranges and queues an empty task: the program no longer needs the content of the memory that it discards,
/// and CUDA allows the content to remain.
cudaError_t CUDARTAPI cudaMemDiscardBatchAsync(void** pointers, std::size_t* bytes, std::size_t count,
                                               unsigned long long flags, cudaStream_t stream) {
  return api_call("cudaMemDiscardBatchAsync", [&] {
    require_ranges(pointers, bytes, count, flags);
    const auto queue = process().find_stream(stream);
    require_not_capturing(*queue);
    return queue->enqueue([] { return cudaSuccess; });
  });
}

cudaError_t CUDARTAPI cudaMemDiscardAndPrefetchBatchAsync(void** pointers, std::size_t* bytes, std::size_t count,
                                                          cudaMemLocation* locations, std::size_t* firsts,
                                                          std::size_t location_count, unsigned long long flags,
                                                          cudaStream_t stream) {
  return cudaMemPrefetchBatchAsync(pointers, bytes, count, locations, firsts, location_count, flags, stream);
}

cudaError_t CUDARTAPI cudaMemRangeGetAttribute(void* data, std::size_t size, cudaMemRangeAttribute attribute,
                                               const void* pointer, std::size_t bytes) {
  return api_call("cudaMemRangeGetAttribute", [&] { tell(data, size, attribute, pointer, bytes); });
}

cudaError_t CUDARTAPI cudaMemRangeGetAttributes(void** data, std::size_t* sizes, cudaMemRangeAttribute* attributes,
                                                std::size_t count, const void* pointer, std::size_t bytes) {
  return api_call("cudaMemRangeGetAttributes", [&] {
    require(data != nullptr && sizes != nullptr && attributes != nullptr && count > 0, cudaErrorInvalidValue);
    for (std::size_t i = 0; i < count; ++i) tell(data[i], sizes[i], attributes[i], pointer, bytes);
  });
}
}
