// The program's call checks a copy or memset, and the stream's thread executes it.

#include <cstdint>
#include <memory>
#include <utility>

#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/array.h"
#include "interpose/soft/cudart/memory/box_copies.h"
#include "interpose/soft/cudart/memory/ipc.h"
#include "interpose/soft/cudart/stream/operations.h"

namespace hpe::cudart {

namespace {

// One side of a copy: the address of the first byte, and the strides.
struct strided_side {
  char* begin = nullptr;
  box_strides strides;
};

strided_side side_of(const std::shared_ptr<const device_array>& array, const cudaPitchedPtr& memory,
                     const cudaPos& position, const box_extent& extent) {
  if (array) return {array->at(position, extent), array->strides()};
  const box_strides strides{memory.pitch, saturated_product(memory.pitch, memory.ysize)};
  const std::size_t offset = strides.offset_of(position.x, position.y, position.z);
  require(saturated_sum(reinterpret_cast<std::uintptr_t>(memory.ptr), offset) != too_many_bytes, cudaErrorInvalidValue);
  return {static_cast<char*>(memory.ptr) + offset, strides};
}

std::shared_ptr<const device_array> array_of(cudaArray_t handle) {
  return handle == nullptr ? nullptr : process().arrays().find(handle);
}

/// Returns the work of a copy or memset. If the work fails, the error becomes the process's sticky error, because the
/// call that queued the work may have returned already.
template <class Body>
stream_task guarded(const char* what, task_memory_uses uses, Body body) {
  auto run = [what, body = std::move(body)]() -> cudaError_t {
    try {
      body();
      return cudaSuccess;
    } catch (const std::exception& caught) {
      const cudaError_t code = code_of_current_exception(what);
      process().fault().set(code, caught.what());
      return code;
    }
  };
  return {std::move(run), std::move(uses)};
}

hpeAccess use_of(char* begin, const box& shape, hpeAccessMode mode) { return {begin, shape.span(), mode}; }

}  // namespace

cudaError_t copy_operation::prepare(int /*device*/, stream_task& out) const {
  require(parameters.kind >= cudaMemcpyHostToHost && parameters.kind <= cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  const auto from_array = array_of(parameters.srcArray);
  const auto to_array = array_of(parameters.dstArray);
  box_extent extent{parameters.extent.width, parameters.extent.height, parameters.extent.depth};
  if (const auto& counted = from_array ? from_array : to_array)
    extent.width = saturated_product(extent.width, counted->element_bytes());
  if (extent.is_empty()) {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }
  const strided_side from = side_of(from_array, parameters.srcPtr, parameters.srcPos, extent);
  const strided_side to = side_of(to_array, parameters.dstPtr, parameters.dstPos, extent);
  const box_copy shape{extent, to.strides, from.strides};
  const cudaMemcpyKind kind = parameters.kind;
  check_box(from.begin, shape.read(), kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
  check_box(to.begin, shape.written(), kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice);
  task_memory_uses uses{
      .ranges = {use_of(from.begin, shape.read(), HPE_IN), use_of(to.begin, shape.written(), HPE_INOUT)}};
  out = guarded("copy", std::move(uses), [to = to.begin, from = from.begin, shape, place = place()] {
    process().ipc().refresh(from);
    copy_box(to, from, shape);
    tell_copy(to, from, shape, place);
  });
  return cudaSuccess;
}

cudaError_t set_operation::prepare(int /*device*/, stream_task& out) const {
  const unsigned element = parameters.elementSize;
  require(element == 1 || element == 2 || element == 4, cudaErrorInvalidValue);
  const box shape{{saturated_product(parameters.width, element), parameters.height, depth},
                  {parameters.pitch, saturated_product(parameters.pitch, plane_height)}};
  if (shape.extent.is_empty()) {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }
  auto* const to = static_cast<char*>(parameters.dst);
  check_box(to, shape, true);
  task_memory_uses uses{.ranges = {use_of(to, shape, HPE_INOUT)}, .is_memset = true};
  out = guarded("memset", std::move(uses), [to, shape, value = parameters.value, element, place = place()] {
    set_box(to, shape, value, element);
    tell_set(to, shape, place);
  });
  return cudaSuccess;
}

}  // namespace hpe::cudart
