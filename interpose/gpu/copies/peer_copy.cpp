// Invariant: when a buffer returns to its ring, its event has been recorded after the last copy that reads the buffer.
// The ring belongs to the destination's context.
#include "interpose/gpu/copies/peer_copy.h"

#include <algorithm>

#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using device::cuda::uncaptured;

std::optional<CUcontext> peer_copy::context_of(CUdeviceptr address, std::size_t bytes) const {
  unsigned type = 0;
  unsigned managed = 0;
  CUcontext context = nullptr;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE ||
      cu_.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS || managed != 0 ||
      cu_.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS ||
      context == nullptr || cu_.cuMemGetAddressRange(&base, &size, address) != CUDA_SUCCESS ||
      bytes > size - (address - base))
    return std::nullopt;
  return context;
}

bool peer_copy::reaches(CUcontext context, CUdeviceptr address) const {
  const entered here(cu_, context);
  unsigned flags = 0;
  // If the driver does not have this attribute, the result is true, so hpe leaves the copy to the driver.
  return cu_.cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address) != CUDA_SUCCESS ||
         flags != CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

std::optional<peer_copy::ends> peer_copy::unconnected(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
  int to_device = -1;
  int from_device = -1;
  // Most copies are small or within one device.
  if (bytes < smallest ||
      cu_.cuPointerGetAttribute(&to_device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, to) != CUDA_SUCCESS ||
      cu_.cuPointerGetAttribute(&from_device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, from) != CUDA_SUCCESS ||
      to_device == from_device)
    return std::nullopt;
  const auto to_context = context_of(to, bytes);
  const auto from_context = context_of(from, bytes);
  if (!to_context || !from_context) return std::nullopt;
  if (reaches(*to_context, from) || reaches(*from_context, to)) return std::nullopt;
  return ends{*to_context, *from_context};
}

CUresult peer_copy::record(CUcontext context, CUstream stream, CUevent& made) const {
  const entered here(cu_, context);
  CUresult result = cu_.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) result = cu_.cuEventRecord(made, stream);
  return result;
}

// Makes all later work on the stream `after` wait for the work that is queued on the stream `before` so far.
CUresult peer_copy::follow(CUcontext context, CUstream before, CUcontext after_context, CUstream after) const {
  CUevent reached = nullptr;
  CUresult result = record(context, before, reached);
  const entered here(cu_, after_context);
  if (result == CUDA_SUCCESS) result = cu_.cuStreamWaitEvent(after, reached, 0);
  if (reached != nullptr) cu_.cuEventDestroy(reached);
  return result;
}

std::optional<CUresult> peer_copy::copy_between(const ends& e, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                                CUstream stream) {
  CUcontext current = nullptr;
  CUcontext owner = nullptr;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cu_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || cu_.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS ||
      owner != current || cu_.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
      capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return std::nullopt;
  const uncaptured here(cu_);
  const auto source = contexts_.of(e.from);
  const auto destination = contexts_.of(e.to);
  pinned_ring& ring = destination->ring();
  const lent_stream leaving(*source);
  const lent_stream arriving(*destination);
  CUresult result = CUDA_SUCCESS;
  const auto then = [&](auto call) {
    if (result == CUDA_SUCCESS) result = call();
  };
  then([&] { return follow(current, stream, e.from, leaving.stream()); });
  then([&] { return follow(current, stream, e.to, arriving.stream()); });
  for (std::size_t at = 0; at < bytes && result == CUDA_SUCCESS;) {
    const std::size_t part = std::min(bytes - at, pinned_ring::buffer_bytes);
    pinned_ring::loan through = ring.take();
    const auto number = reinterpret_cast<CUdeviceptr>(through.data());
    {
      const entered there(cu_, e.from);
      then([&] { return cu_.cuStreamWaitEvent(leaving.stream(), through.done(), 0); });
      then([&] { return cu_.cuMemcpyAsync(number, from + at, part, leaving.stream()); });
    }
    then([&] { return follow(e.from, leaving.stream(), e.to, arriving.stream()); });
    {
      const entered there(cu_, e.to);
      then([&] { return cu_.cuMemcpyAsync(to + at, number, part, arriving.stream()); });
      then([&] { return through.used_by(arriving.stream()); });
    }
    if (result != CUDA_SUCCESS) {
      // A copy into the buffer may be queued without a following event for which the buffer's next user could wait. So
      // this thread waits for the copy.
      const entered there(cu_, e.from);
      cu_.cuStreamSynchronize(leaving.stream());
    }
    at += part;
  }
  then([&] { return follow(e.to, arriving.stream(), current, stream); });
  return result;
}

std::optional<CUresult> peer_copy::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  try {
    const auto e = unconnected(to, from, bytes);
    return e ? copy_between(*e, to, from, bytes, stream) : std::nullopt;
  } catch (const error& failure) {
    log(log_level::info, "copies between devices are left to the driver: {}", failure.what());
    return std::nullopt;
  }
}

std::optional<CUresult> peer_copy::copy_after_all(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const auto e = unconnected(to, from, bytes);
  if (!e) return std::nullopt;
  const uncaptured here(cu_);
  for (const CUcontext context : {e->to, e->from}) {
    const entered there(cu_, context);
    if (const CUresult failed = cu_.cuCtxSynchronize(); failed != CUDA_SUCCESS) return std::nullopt;
  }
  if (cu_.cuCtxSynchronize() != CUDA_SUCCESS) return std::nullopt;
  const auto done = copy(to, from, bytes, CU_STREAM_LEGACY);
  if (done == CUDA_SUCCESS) return cu_.cuStreamSynchronize(CU_STREAM_LEGACY);
  return done;
}

}  // namespace hpe::cuda_hooks
