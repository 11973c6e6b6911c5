// Invariant: a buffer returns to its ring with an event recorded after all work that uses it, also after a failure.
#include "interpose/cuda/copies/pageable_copy.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "interpose/cuda/work/device_range.h"
#include "runtime/base/log.h"
#include "runtime/transfer/staging.h"

namespace hpe::cuda_hooks {

using device::cuda::uncaptured;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

using writing = transfer::copy_crew::writing;

// The size of the piece at `done`, in whole rows.
std::size_t piece_at(std::size_t done, const copied_memory& what) {
  const std::size_t piece = transfer::next_piece(done, what.bytes() - done, pinned_ring::buffer_bytes);
  return what.rows == 1 ? piece : std::max(what.width, piece / what.width * what.width);
}

// Copy engines are slow for narrower rows, on both sides. Rows wider than a buffer are rare.
constexpr std::size_t narrowest_row = 512;

}  // namespace

bool pageable_copy::is_pageable(const void* host, std::size_t bytes) const {
  // The driver does not know an address that is neither pinned nor managed nor in device memory.
  const auto unknown = [&](CUdeviceptr address) {
    unsigned type = 0;
    return cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS || type == 0;
  };
  return unknown(number_of(host)) && unknown(number_of(host) + bytes - 1);
}

// How many bytes from an address on belong to its allocation in device memory; 0 if there is none.
std::size_t pageable_copy::bytes_from(CUdeviceptr address) const {
  const auto range = device_range_at(cu_, address);
  return range ? range->bytes - (address - range->base) : 0;
}

// The driver keeps captures, streams of another context, managed memory, and all invalid copies.
bool pageable_copy::suitable(const copied_memory& what, CUstream stream) const {
  if (what.bytes() < smallest || what.host == nullptr) return false;
  if (what.rows > 1 &&
      (cu_.cuMemcpy2DAsync == nullptr || what.width < narrowest_row || what.width > pinned_ring::buffer_bytes ||
       what.device_pitch < what.width || what.host_pitch < what.width))
    return false;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cu_.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return false;
  CUcontext current = nullptr;
  CUcontext owner = nullptr;
  if (cu_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return false;
  if (cu_.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS || owner != current) return false;
  return what.device_extent() <= bytes_from(what.device) && is_pageable(what.host, what.host_extent());
}

std::shared_ptr<context_parts> pageable_copy::parts_for(std::size_t bytes) {
  if (seen_.fetch_add(bytes, std::memory_order_relaxed) + bytes < worth_buffers) return nullptr;
  CUcontext current = nullptr;
  cu_.cuCtxGetCurrent(&current);
  try {
    std::shared_ptr<context_parts> parts = contexts_.of(current);
    (void)parts->ring();
    return parts;
  } catch (const error& e) {
    log(log_level::info, "large copies go straight on: {}", e.what());
    return nullptr;
  }
}

// Copies bytes [at, at + bytes) of the copy, counted without gaps, between `through` and the program's memory.
transfer::copy_crew::pending pageable_copy::begin_piece(const copied_memory& what, std::size_t at, std::size_t bytes,
                                                        std::byte* through, bool up, writing how) {
  transfer::copy_crew::rows rows{bytes, 1, 0, 0};
  std::byte* host = what.host + at;
  if (what.rows > 1) {
    rows = {what.width, bytes / what.width, what.host_pitch, what.host_pitch};
    (up ? rows.to_pitch : rows.from_pitch) = what.width;
    host = what.host + at / what.width * what.host_pitch;
  }
  return up ? crew_.begin_rows(through, host, rows, how) : crew_.begin_rows(host, through, rows, how);
}

CUresult pageable_copy::queue_piece(const copied_memory& what, std::size_t at, std::size_t bytes, std::byte* through,
                                    CUstream stream, bool up) const {
  if (what.rows == 1)
    return up ? cu_.cuMemcpyAsync(what.device + at, number_of(through), bytes, stream)
              : cu_.cuMemcpyAsync(number_of(through), what.device + at, bytes, stream);
  CUDA_MEMCPY2D copy{};
  const CUdeviceptr device = what.device + at / what.width * what.device_pitch;
  copy.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcHost = copy.dstHost = through;
  copy.srcDevice = copy.dstDevice = device;
  copy.srcPitch = up ? what.width : what.device_pitch;
  copy.dstPitch = up ? what.device_pitch : what.width;
  copy.WidthInBytes = what.width;
  copy.Height = bytes / what.width;
  return cu_.cuMemcpy2DAsync(&copy, stream);
}

std::optional<CUresult> pageable_copy::upload(const copied_memory& what, CUstream stream, bool wait) {
  if (!suitable(what, stream)) return std::nullopt;
  const std::size_t bytes = what.bytes();
  const std::shared_ptr<context_parts> parts = parts_for(bytes);
  if (parts == nullptr) return std::nullopt;
  pinned_ring& ring = parts->ring();
  const uncaptured here(cu_);
  struct begun {
    pinned_ring::buffer through;
    std::size_t at;
    std::size_t bytes;
    transfer::copy_crew::pending copy;
  };
  std::optional<begun> last;
  CUresult result = CUDA_SUCCESS;
  const auto queue_last = [&] {
    if (!last) return;
    last->copy.finish();
    if (result == CUDA_SUCCESS) {
      result = queue_piece(what, last->at, last->bytes, last->through.data, stream, true);
      cu_.cuEventRecord(last->through.done, stream);
    }
    const bool is_end = last->at + last->bytes == bytes;
    if (result == CUDA_SUCCESS && wait && is_end) result = cu_.cuEventSynchronize(last->through.done);
    ring.give_back(last->through);
    last.reset();
  };
  for (std::size_t at = 0, part = 0; at < bytes && result == CUDA_SUCCESS; at += part) {
    part = piece_at(at, what);
    pinned_ring::buffer through = ring.try_take();
    if (through.data == nullptr) {
      queue_last();  // a thread must not hold a buffer while it waits for one, or two threads could deadlock
      through = ring.take();
    }
    if (const CUresult free = cu_.cuEventSynchronize(through.done); free != CUDA_SUCCESS) {
      ring.give_back(through);
      result = free;
      break;
    }
    // The threads fill this buffer while this thread queues the previous one, without a rendezvous between the two.
    auto copy = begin_piece(what, at, part, through.data, true, transfer::copy_crew::to_stage(bytes));
    queue_last();
    last.emplace(begun{through, at, part, std::move(copy)});
  }
  queue_last();
  return result;
}

std::optional<CUresult> pageable_copy::download(const copied_memory& what, CUstream stream) {
  if (!suitable(what, stream)) return std::nullopt;
  const std::size_t bytes = what.bytes();
  const std::shared_ptr<context_parts> parts = parts_for(bytes);
  if (parts == nullptr) return std::nullopt;
  pinned_ring& ring = parts->ring();
  const uncaptured here(cu_);
  struct piece {
    pinned_ring::buffer through;
    std::size_t offset;
    std::size_t bytes;
  };
  std::deque<piece> flying;
  CUresult result = CUDA_SUCCESS;
  std::size_t queued = 0;
  const auto queue = [&](pinned_ring::buffer through) {
    flying.push_back({through, queued, piece_at(queued, what)});
    result = cu_.cuEventSynchronize(through.done);
    if (result != CUDA_SUCCESS) return;
    result = queue_piece(what, queued, flying.back().bytes, through.data, stream, false);
    cu_.cuEventRecord(through.done, stream);
    queued += flying.back().bytes;
  };
  while (result == CUDA_SUCCESS && (queued < bytes || !flying.empty())) {
    while (result == CUDA_SUCCESS && queued < bytes) {
      const pinned_ring::buffer through = flying.empty() ? ring.take() : ring.try_take();
      if (through.data == nullptr) break;
      queue(through);
    }
    if (result != CUDA_SUCCESS) break;
    const piece next = flying.front();
    result = cu_.cuEventSynchronize(next.through.done);
    if (result != CUDA_SUCCESS) break;
    flying.pop_front();
    begin_piece(what, next.offset, next.bytes, next.through.data, false, writing::past_caches).finish();
    // Usually more of this copy is waiting, so the buffer is used again at once.
    queued < bytes ? queue(next.through) : ring.give_back(next.through);
  }
  for (const piece& p : flying) ring.give_back(p.through);
  return result;
}

std::optional<CUresult> pageable_copy::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                                            bool wait) {
  if (bytes < smallest) return std::nullopt;
  if (is_device_memory(cu_, to))
    return upload(to, reinterpret_cast<const void*>(from), bytes, stream, wait);  // NOLINT(performance-no-int-to-ptr)
  return download(reinterpret_cast<void*>(to), from, bytes, stream);              // NOLINT(performance-no-int-to-ptr)
}

}  // namespace hpe::cuda_hooks
