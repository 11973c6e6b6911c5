// Invariant: a buffer goes back to its ring with an event behind all that uses it, also when something fails.
#include "interpose/cuda/pageable_copy.h"

#include <algorithm>
#include <deque>

#include "runtime/os/signals.h"

namespace hpe::cuda_hooks {

using device::cuda::uncaptured;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

using writing = transfer::copy_crew::writing;

// Seen on an H200 with 16 cores: 256 MiB go up at 50 GB/s when the buffers are written through the caches and at 42
// past them, 16 MiB at 24 and at 40.
writing upload_writing(std::size_t bytes) {
  constexpr std::size_t large = std::size_t{64} << 20;
  return bytes < large ? writing::past_caches : writing::cached;
}

// Small pieces first and last, so that both halves of the way are soon at work and end together; large ones in between,
// because each costs the threads a meeting.
std::size_t piece_at(std::size_t done, std::size_t bytes) {
  constexpr std::size_t unit = std::size_t{512} << 10;
  const std::size_t left = bytes - done;
  const std::size_t wished = std::min(done, left / 2) / unit * unit;
  return std::min(left, std::clamp(wished, unit, pinned_ring::buffer_bytes));
}

}  // namespace

bool pageable_copy::is_pageable(const void* host, std::size_t bytes) const {
  // The driver knows nothing of an address that is neither pinned, nor managed, nor a device's.
  const auto unknown = [&](CUdeviceptr address) {
    unsigned type = 0;
    return cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS || type == 0;
  };
  return unknown(number_of(host)) && unknown(number_of(host) + bytes - 1);
}

bool pageable_copy::is_device(CUdeviceptr address) const {
  unsigned type = 0;
  unsigned managed = 0;
  return cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE &&
         cu_.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed == 0;
}

// What is left to the driver: captures, streams of another context, managed memory, and everything that is an error.
bool pageable_copy::suitable(CUdeviceptr device, const void* host, std::size_t bytes, CUstream stream) const {
  if (bytes < smallest || host == nullptr) return false;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cu_.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return false;
  CUcontext current = nullptr;
  CUcontext owner = nullptr;
  if (cu_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return false;
  if (cu_.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS || owner != current) return false;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  return is_device(device) && cu_.cuMemGetAddressRange(&base, &size, device) == CUDA_SUCCESS &&
         bytes <= size - (device - base) && is_pageable(host, bytes);
}

std::shared_ptr<pinned_ring> pageable_copy::ring_for(std::size_t bytes) {
  if (seen_.fetch_add(bytes, std::memory_order_relaxed) + bytes < worth_buffers) return nullptr;
  CUcontext current = nullptr;
  cu_.cuCtxGetCurrent(&current);
  return rings_.of(current);
}

void pageable_copy::copy_on_host(void* to, const void* from, std::size_t bytes, writing how) {
  std::call_once(crew_started_, [&] {
    // The threads of the crew start here, and take none of the program's signals.
    const os::signals_blocked quiet;
    crew_.copy(to, from, bytes);
  });
  crew_.copy(to, from, bytes, how);
}

std::optional<CUresult> pageable_copy::upload(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                                              bool wait) {
  if (!suitable(to, from, bytes, stream)) return std::nullopt;
  const std::shared_ptr<pinned_ring> ring = ring_for(bytes);
  if (ring == nullptr) return std::nullopt;
  const uncaptured here(cu_);
  CUresult result = CUDA_SUCCESS;
  for (std::size_t at = 0, part = 0; at < bytes && result == CUDA_SUCCESS; at += part) {
    part = piece_at(at, bytes);
    const pinned_ring::buffer through = ring->take();
    result = cu_.cuEventSynchronize(through.done);
    if (result == CUDA_SUCCESS) {
      copy_on_host(through.data, static_cast<const std::byte*>(from) + at, part, upload_writing(bytes));
      result = cu_.cuMemcpyAsync(to + at, number_of(through.data), part, stream);
      cu_.cuEventRecord(through.done, stream);
    }
    if (result == CUDA_SUCCESS && wait && at + part == bytes) result = cu_.cuEventSynchronize(through.done);
    ring->give_back(through);
  }
  return result;
}

std::optional<CUresult> pageable_copy::download(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (!suitable(from, to, bytes, stream)) return std::nullopt;
  const std::shared_ptr<pinned_ring> ring = ring_for(bytes);
  if (ring == nullptr) return std::nullopt;
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
    flying.push_back({through, queued, piece_at(queued, bytes)});
    result = cu_.cuEventSynchronize(through.done);
    if (result != CUDA_SUCCESS) return;
    result = cu_.cuMemcpyAsync(number_of(through.data), from + queued, flying.back().bytes, stream);
    cu_.cuEventRecord(through.done, stream);
    queued += flying.back().bytes;
  };
  while (result == CUDA_SUCCESS && (queued < bytes || !flying.empty())) {
    while (result == CUDA_SUCCESS && queued < bytes) {
      const pinned_ring::buffer through = flying.empty() ? ring->take() : ring->try_take();
      if (through.data == nullptr) break;
      queue(through);
    }
    if (result != CUDA_SUCCESS) break;
    const piece next = flying.front();
    result = cu_.cuEventSynchronize(next.through.done);
    if (result != CUDA_SUCCESS) break;
    flying.pop_front();
    copy_on_host(static_cast<std::byte*>(to) + next.offset, next.through.data, next.bytes, writing::past_caches);
    // Used again at once: more of this copy is waiting, most often.
    queued < bytes ? queue(next.through) : ring->give_back(next.through);
  }
  for (const piece& p : flying) ring->give_back(p.through);
  return result;
}

std::optional<CUresult> pageable_copy::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                                            bool wait) {
  if (bytes < smallest) return std::nullopt;
  if (is_device(to))
    return upload(to, reinterpret_cast<const void*>(from), bytes, stream, wait);  // NOLINT(performance-no-int-to-ptr)
  return download(reinterpret_cast<void*>(to), from, bytes, stream);              // NOLINT(performance-no-int-to-ptr)
}

}  // namespace hpe::cuda_hooks
