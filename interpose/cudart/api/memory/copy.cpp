// A copy is checked in the program's call and executed in its stream's thread.

#include <memory>
#include <utility>

#include "interpose/cudart/device/context.h"
#include "interpose/cudart/memory/array.h"
#include "interpose/cudart/memory/box.h"
#include "interpose/cudart/memory/ipc.h"
#include "interpose/cudart/stream/operations.h"

namespace hpe::cudart {

namespace {

box box_of(const cudaPitchedPtr& memory, const cudaPos& position) {
  const std::size_t plane = memory.pitch * memory.ysize;
  return {static_cast<char*>(memory.ptr) + position.z * plane + position.y * memory.pitch + position.x, memory.pitch,
          plane};
}

std::shared_ptr<const device_array> array_of(cudaArray_t handle) {
  return handle == nullptr ? nullptr : process().arrays().find(handle);
}

/// The work of a copy or memset in a stream's thread. A failure becomes the process's sticky error, because the call
/// that queued the work has already returned.
template <class Body>
work guarded(const char* what, memory_uses uses, Body body) {
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

hpeAccess use_of(const box& where, const box_extent& extent, hpeAccessMode mode) {
  return {where.begin, where.span(extent), mode};
}

}  // namespace

cudaError_t copy_operation::prepare(int /*device*/, work& out) const {
  require(parameters.kind >= cudaMemcpyHostToHost && parameters.kind <= cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  const auto from_array = array_of(parameters.srcArray);
  const auto to_array = array_of(parameters.dstArray);
  box_extent extent{parameters.extent.width, parameters.extent.height, parameters.extent.depth};
  if (const auto& counted = from_array ? from_array : to_array) extent.width *= counted->element_bytes();
  if (extent.is_empty()) {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }
  const box from =
      from_array ? from_array->at(parameters.srcPos, extent) : box_of(parameters.srcPtr, parameters.srcPos);
  const box to = to_array ? to_array->at(parameters.dstPos, extent) : box_of(parameters.dstPtr, parameters.dstPos);
  const cudaMemcpyKind kind = parameters.kind;
  check_box(from, extent, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
  check_box(to, extent, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice);
  memory_uses uses{.ranges = {use_of(from, extent, HPE_IN), use_of(to, extent, HPE_INOUT)}};
  out = guarded("copy", std::move(uses), [to, from, extent] {
    process().ipc().refresh(from.begin);
    copy_box(to, from, extent);
  });
  return cudaSuccess;
}

cudaError_t set_operation::prepare(int /*device*/, work& out) const {
  const unsigned element = parameters.elementSize;
  require(element == 1 || element == 2 || element == 4, cudaErrorInvalidValue);
  const box_extent extent{parameters.width * element, parameters.height, depth};
  if (extent.is_empty()) {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }
  const box to{static_cast<char*>(parameters.dst), parameters.pitch, parameters.pitch * plane_height};
  check_box(to, extent, true);
  memory_uses uses{.ranges = {use_of(to, extent, HPE_INOUT)}};
  out = guarded("memset", std::move(uses),
                [to, extent, value = parameters.value, element] { set_box(to, extent, value, element); });
  return cudaSuccess;
}

}  // namespace hpe::cudart
