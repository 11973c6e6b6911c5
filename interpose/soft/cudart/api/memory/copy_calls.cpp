// The functions that copy memory.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/memory/copying.h"
#include "runtime/base/box.h"

using namespace hpe::cudart;

namespace {

cudaMemcpy3DParms without_devices(const cudaMemcpy3DPeerParms& what) {
  process().devices().require_device(what.srcDevice);
  process().devices().require_device(what.dstDevice);
  cudaMemcpy3DParms copy{};
  copy.srcArray = what.srcArray;
  copy.srcPos = what.srcPos;
  copy.srcPtr = what.srcPtr;
  copy.dstArray = what.dstArray;
  copy.dstPos = what.dstPos;
  copy.dstPtr = what.dstPtr;
  copy.extent = what.extent;
  copy.kind = cudaMemcpyDeviceToDevice;
  return copy;
}

cudaMemcpy3DParms between_devices(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  process().devices().require_device(to_device);
  process().devices().require_device(from_device);
  return flat_copy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

template <class T>
const T& given(const T* pointer) {
  require(pointer != nullptr, cudaErrorInvalidValue);
  return *pointer;
}

cudaPitchedPtr pitched(const decltype(cudaMemcpy3DOperand::op.ptr)& operand, const cudaExtent& extent,
                       std::size_t element) {
  const std::size_t row = operand.rowLength != 0 ? operand.rowLength : extent.width;
  const std::size_t rows = operand.layerHeight != 0 ? operand.layerHeight : extent.height;
  require(row >= extent.width && rows >= extent.height, cudaErrorInvalidValue);
  const std::size_t pitch = hpe::saturated_product(row, element);
  return {operand.ptr, pitch, pitch, rows};
}

/// Returns the unit of an operand, in bytes: the size of an element of an array, or 1 for other memory. If one of the
/// operands is an array, the width of the copy counts elements of this array.
std::size_t element_of(const cudaMemcpy3DOperand& operand) {
  require(operand.type == cudaMemcpyOperandTypePointer || operand.type == cudaMemcpyOperandTypeArray,
          cudaErrorInvalidValue);
  if (operand.type == cudaMemcpyOperandTypePointer) return 1;
  cudaChannelFormatDesc format{};
  check(cudaGetChannelDesc(&format, operand.op.array.array));
  return static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
}

cudaMemcpy3DParms one_of_batch(const cudaMemcpy3DBatchOp& what) {
  const std::size_t element = std::max(element_of(what.src), element_of(what.dst));
  require(what.extent.width > 0 && what.extent.height > 0 && what.extent.depth > 0, cudaErrorInvalidValue);
  const auto at = [](const cudaOffset3D& offset) { return cudaPos{offset.x, offset.y, offset.z}; };
  cudaMemcpy3DParms copy{};
  copy.extent = what.extent;
  copy.kind = cudaMemcpyDefault;
  if (what.src.type == cudaMemcpyOperandTypeArray) {
    copy.srcArray = what.src.op.array.array;
    copy.srcPos = at(what.src.op.array.offset);
  } else {
    copy.srcPtr = pitched(what.src.op.ptr, what.extent, element);
  }
  if (what.dst.type == cudaMemcpyOperandTypeArray) {
    copy.dstArray = what.dst.op.array.array;
    copy.dstPos = at(what.dst.op.array.offset);
  } else {
    copy.dstPtr = pitched(what.dst.op.ptr, what.extent, element);
  }
  return copy;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return api_call("cudaMemcpy", [&] { return copy_now(flat_copy(to, from, bytes, kind)); });
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return api_call("cudaMemcpyAsync", [&] { return copy_in_stream(flat_copy(to, from, bytes, kind), stream); });
}

cudaError_t CUDARTAPI cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return api_call("cudaMemcpy2D", [&] {
    require(to_pitch >= width && from_pitch >= width, cudaErrorInvalidPitchValue);
    return copy_now(pitched_copy(to, to_pitch, from, from_pitch, width, height, kind));
  });
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                        std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  return api_call("cudaMemcpy2DAsync", [&] {
    require(to_pitch >= width && from_pitch >= width, cudaErrorInvalidPitchValue);
    return copy_in_stream(pitched_copy(to, to_pitch, from, from_pitch, width, height, kind), stream);
  });
}

cudaError_t CUDARTAPI cudaMemcpy3D(const cudaMemcpy3DParms* what) {
  return api_call("cudaMemcpy3D", [&] { return copy_now(given(what)); });
}

cudaError_t CUDARTAPI cudaMemcpy3DAsync(const cudaMemcpy3DParms* what, cudaStream_t stream) {
  return api_call("cudaMemcpy3DAsync", [&] { return copy_in_stream(given(what), stream); });
}

cudaError_t CUDARTAPI cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  return api_call("cudaMemcpyPeer", [&] { return copy_now(between_devices(to, to_device, from, from_device, bytes)); });
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                          cudaStream_t stream) {
  return api_call("cudaMemcpyPeerAsync",
                  [&] { return copy_in_stream(between_devices(to, to_device, from, from_device, bytes), stream); });
}

cudaError_t CUDARTAPI cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* what) {
  return api_call("cudaMemcpy3DPeer", [&] { return copy_now(without_devices(given(what))); });
}

cudaError_t CUDARTAPI cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* what, cudaStream_t stream) {
  return api_call("cudaMemcpy3DPeerAsync", [&] { return copy_in_stream(without_devices(given(what)), stream); });
}

/// Ignores the attributes. They are hints, except the order in which the copies read their sources; hpe reads the
/// sources in stream order, which every value of this attribute allows.
cudaError_t CUDARTAPI cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* bytes,
                                           std::size_t count, cudaMemcpyAttributes* attributes,
                                           std::size_t* first_of_attributes, std::size_t attribute_count,
                                           cudaStream_t stream) {
  return api_call("cudaMemcpyBatchAsync", [&] {
    require(count > 0 && to != nullptr && from != nullptr && bytes != nullptr && attributes != nullptr &&
                first_of_attributes != nullptr && attribute_count > 0 && attribute_count <= count &&
                first_of_attributes[0] == 0 && stream != nullptr && stream != cudaStreamLegacy,
            cudaErrorInvalidValue);
    for (std::size_t i = 0; i < count; ++i) {
      check(copy_in_stream(flat_copy(to[i], from[i], bytes[i], cudaMemcpyDefault), stream));
    }
  });
}

cudaError_t CUDARTAPI cudaMemcpy3DBatchAsync(std::size_t count, cudaMemcpy3DBatchOp* copies, unsigned long long flags,
                                             cudaStream_t stream) {
  return api_call("cudaMemcpy3DBatchAsync", [&] {
    require(count > 0 && copies != nullptr && flags == 0 && stream != nullptr && stream != cudaStreamLegacy,
            cudaErrorInvalidValue);
    for (std::size_t i = 0; i < count; ++i) check(copy_in_stream(one_of_batch(copies[i]), stream));
  });
}
}
