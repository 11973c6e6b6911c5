#include <algorithm>
#include <array>

#include "interpose/gpu/oversubscribed/driver_result.h"
#include "interpose/gpu/oversubscribed/oversubscribed.h"
#include "runtime/base/box.h"
#include "runtime/base/log.h"
#include "runtime/core/runtime.h"
#include "runtime/trace/refusals.h"

namespace hpe::cuda_hooks {

using accessed_range = oversubscribed::accessed_range;

CUresult object_copies::find_type(CUdeviceptr address, memory_type& found) const {
  unsigned type = 0;
  const CUresult result = cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  found = result != CUDA_SUCCESS         ? memory_type::pageable
          : type == CU_MEMORYTYPE_DEVICE ? memory_type::device
                                         : memory_type::pinned;
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : result;  // not known to the driver: pageable
}

// Without --oversubscribe, all data is in device memory, so a part may have any size.
std::size_t object_copies::bytes_of_part(unsigned device) const {
  if (!oversubscribed::wanted()) return ~std::size_t{511};
  constexpr std::size_t best = std::size_t{32} << 20;
  constexpr std::size_t least = std::size_t{2} << 20;
  constexpr std::size_t unit = 512;
  return std::clamp(hpe_.devices().at(device).info().memory_bytes / 8, least, best) / unit * unit;
}

CUresult object_copies::in_parts(unsigned device, std::size_t bytes, std::size_t unit,
                                 function_ref<CUresult(std::size_t, std::size_t)> part) {
  const std::size_t most = bytes_of_part(device) / unit * unit;
  try {
    for (std::size_t at = 0; at < bytes; at += most)
      if (const CUresult result = part(at, std::min(most, bytes - at)); result != CUDA_SUCCESS) return result;
  } catch (const std::exception& e) {
    return all_.refused(e);
  }
  return CUDA_SUCCESS;
}

std::optional<CUresult> object_copies::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                                            bool waits, function_ref<CUresult(std::size_t, std::size_t)> queue) {
  const auto target = all_.objects().find(to);
  const auto source = all_.objects().find(from);
  if (bytes == 0 || (!target && !source)) return std::nullopt;
  const auto leaves = [&](const auto& object, CUdeviceptr at) {
    return object && bytes > object->base + object->bytes - at;
  };
  if (leaves(target, to) || leaves(source, from)) return CUDA_ERROR_INVALID_VALUE;
  std::optional<oversubscribed::stream_place> where;
  if (const CUresult result = all_.find_place(stream, where); result != CUDA_SUCCESS) return result;
  const CUdeviceptr other = target ? from : to;
  memory_type type = memory_type::device;
  if (where && !where->captured && !(target && source))
    if (const CUresult result = find_type(other, type); result != CUDA_SUCCESS) return result;
  const bool meets_host = type != memory_type::device;
  // If the driver's call returns only after the copy, the call first waits for the earlier work on the stream, which
  // may take a long time. So this thread waits for that work here, before it locks any mutex.
  if (meets_host && (waits || (source && type == memory_type::pageable)))
    if (const CUresult before = cu_.cuStreamSynchronize(stream); before != CUDA_SUCCESS) return before;
  if (meets_host && waits && oversubscribed::wanted()) {
    // If the data is valid in host memory, copies directly from or to host memory, without moving the data to the
    // device.
    try {
      hpe_.copies().copy_for_program(oversubscribed::pointer(to), oversubscribed::pointer(from), bytes);
      return CUDA_SUCCESS;
    } catch (const std::exception& e) {
      log(log_level::warn, "a copy of {} bytes failed: {}", bytes, e.what());
      trace::refusals::add();
      return result_of(e);
    }
  }
  const CUresult queued = in_parts((target ? target : source)->device, bytes, 1, [&](std::size_t at, std::size_t part) {
    return all_.run(
        stream,
        all_.use_of(std::array{accessed_range{from + at, part, HPE_IN}, accessed_range{to + at, part, HPE_OUT}}),
        [&] { return queue(at, part); });
  });
  // The driver's asynchronous copy to pageable memory has waited.
  const bool has_waited = source && type == memory_type::pageable && !oversubscribed::wanted();
  return queued == CUDA_SUCCESS && waits && !has_waited ? cu_.cuStreamSynchronize(stream) : queued;
}

std::optional<CUresult> object_copies::overwrite(CUdeviceptr to, std::size_t bytes, std::size_t unit, CUstream stream,
                                                 function_ref<CUresult(std::size_t, std::size_t)> queue) {
  const auto target = all_.objects().find(to);
  if (bytes == 0 || !target) return std::nullopt;
  if (bytes > target->base + target->bytes - to) return CUDA_ERROR_INVALID_VALUE;
  return in_parts(target->device, bytes, unit, [&](std::size_t at, std::size_t part) {
    return all_.run(stream, all_.use_of(std::array{accessed_range{to + at, part, HPE_OUT}}),
                    [&] { return queue(at, part); });
  });
}

std::optional<CUresult> object_copies::use_box(CUdeviceptr to, CUdeviceptr from, const box_copy& whole, CUstream stream,
                                               function_ref<CUresult(const box_part&)> queue) try {
  const auto target = all_.objects().find(to), source = all_.objects().find(from);
  if (whole.extent.is_empty() || (!target && !source)) return std::nullopt;
  const auto leaves = [](const auto& object, CUdeviceptr at, const box& shape) {
    return object && shape.span() > object->base + object->bytes - at;
  };
  if (leaves(target, to, whole.written()) || leaves(source, from, whole.read())) return CUDA_ERROR_INVALID_VALUE;
  std::vector<box_strides> sides;  // only the sides in hpe memory limit the size of a part
  if (target) sides.push_back(whole.to);
  if (source) sides.push_back(whole.from);
  const auto range_of = [](CUdeviceptr at, const box_strides& strides, const box_part& part, hpeAccessMode mode) {
    const box shape{part.extent, strides};
    // The bytes in the gaps between rows must not change, so the access to a range with gaps is HPE_INOUT and not
    // HPE_OUT.
    const bool has_gaps = shape.span() != shape.bytes();
    return accessed_range{at + strides.offset_of(part.x, part.y, part.z), shape.span(),
                          mode == HPE_OUT && has_gaps ? HPE_INOUT : mode};
  };
  box_parts parts(whole.extent, sides, bytes_of_part((target ? target : source)->device));
  while (const auto part = parts.next()) {
    const CUresult result =
        all_.run(stream,
                 all_.use_of(std::array{source ? range_of(from, whole.from, *part, HPE_IN) : accessed_range(),
                                        target ? range_of(to, whole.to, *part, HPE_OUT) : accessed_range()}),
                 [&] { return queue(*part); });
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
} catch (const std::exception& e) {
  return all_.refused(e);
}

}  // namespace hpe::cuda_hooks
