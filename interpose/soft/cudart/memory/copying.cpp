// As in CUDA, a copy does not use pageable memory after the program's call has returned. For a small source, the call
// copies the bytes into the queued operation; in all other cases, the call waits for the copy. If the stream is being
// captured, the copy runs when the program launches the graph.

#include "interpose/soft/cudart/memory/copying.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/box_copies.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "interpose/soft/cudart/stream/operations.h"

namespace hpe::cudart {

namespace {

constexpr std::size_t most_taken_along = std::size_t{64} << 10;

/// A copy operation that owns a copy of the source bytes.
class carried_copy final : public stream_operation {
 public:
  carried_copy(const cudaMemcpy3DParms& what, std::size_t bytes)
      : bytes_(static_cast<const char*>(what.srcPtr.ptr), static_cast<const char*>(what.srcPtr.ptr) + bytes) {
    copy_.parameters = what;
    copy_.parameters.srcPtr.ptr = bytes_.data();
  }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemcpy; }
  cudaError_t prepare(int device, stream_task& out) const override { return copy_.prepare(device, out); }

 private:
  std::vector<char> bytes_;
  copy_operation copy_;
};

bool is_pageable_side(cudaArray_const_t array, const void* address) {
  return array == nullptr && address != nullptr && is_pageable(address);
}

bool is_on_device(const void* address) {
  const auto found = process().memory().find(address);
  return found && found->is_on_device() && !found->is_managed();
}

bool is_within_devices(const cudaMemcpy3DParms& what) {
  return (what.srcArray != nullptr || is_on_device(what.srcPtr.ptr)) &&
         (what.dstArray != nullptr || is_on_device(what.dstPtr.ptr));
}

/// Returns the number of bytes of a copy that is one contiguous range; 0 for all other copies.
std::size_t flat_bytes(const cudaMemcpy3DParms& what) {
  const bool is_flat = what.srcArray == nullptr && what.dstArray == nullptr && what.extent.height == 1 &&
                       what.extent.depth == 1 && what.srcPos.x == 0 && what.srcPos.y == 0 && what.srcPos.z == 0;
  return is_flat ? what.extent.width : 0;
}

std::shared_ptr<set_operation> make_set(const cudaMemsetParams& what, std::size_t planes, std::size_t plane_height) {
  auto made = std::make_shared<set_operation>();
  made->parameters = what;
  made->depth = planes;
  made->plane_height = plane_height;
  return made;
}

/// Queues an operation on a stream; the queued work owns a reference to the operation.
cudaError_t submit_carried(cudart_stream& where, const std::shared_ptr<const stream_operation>& what) {
  require_not_capturing(where);
  stream_task task;
  check(what->prepare(where.device(), task));
  task_memory_uses uses = task.uses();
  return where.enqueue({[what, task = std::move(task)] { return task(); }, std::move(uses)}, {}, nullptr,
                       what->place());
}

}  // namespace

cudaMemcpy3DParms flat_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return pitched_copy(to, bytes, from, bytes, bytes, 1, kind);
}

cudaMemcpy3DParms pitched_copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                               std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms what{};
  what.dstPtr = {to, to_pitch, width, height};
  what.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
  what.extent = {width, height, 1};
  what.kind = kind;
  return what;
}

cudaError_t copy_now(const cudaMemcpy3DParms& what) {
  process().captures().require_unsafe_calls_allowed();
  const std::shared_ptr<cudart_stream> where = process().find_stream(nullptr);
  auto made = std::make_shared<copy_operation>();
  made->parameters = what;
  check(submit(*where, std::move(made)));
  // CUDA does not make the program wait for copies within devices.
  return is_within_devices(what) ? where->finish() : where->synchronize();
}

cudaError_t copy_in_stream(const cudaMemcpy3DParms& what, cudaStream_t handle) {
  const std::shared_ptr<cudart_stream> where = process().find_stream(handle);
  const bool captures = where->capturing() != nullptr;
  const bool reads_pageable = is_pageable_side(what.srcArray, what.srcPtr.ptr);
  const bool writes_pageable = is_pageable_side(what.dstArray, what.dstPtr.ptr);
  const std::size_t bytes = flat_bytes(what);
  if (!captures && reads_pageable && !writes_pageable && bytes != 0 && bytes <= most_taken_along) {
    if (what.kind == cudaMemcpyHostToDevice || what.kind == cudaMemcpyDefault) {
      return submit_carried(*where, std::make_shared<carried_copy>(what, bytes));
    }
  }
  auto made = std::make_shared<copy_operation>();
  made->parameters = what;
  check(submit(*where, std::move(made)));
  return !captures && (reads_pageable || writes_pageable) ? where->synchronize() : cudaSuccess;
}

cudaError_t set_now(const cudaMemsetParams& what, std::size_t planes, std::size_t plane_height) {
  const std::shared_ptr<cudart_stream> where = process().find_stream(nullptr);
  check(submit(*where, make_set(what, planes, plane_height)));
  return is_on_device(what.dst) ? where->finish() : where->synchronize();
}

cudaError_t set_in_stream(const cudaMemsetParams& what, cudaStream_t handle, std::size_t planes,
                          std::size_t plane_height) {
  return submit(*process().find_stream(handle), make_set(what, planes, plane_height));
}

}  // namespace hpe::cudart
