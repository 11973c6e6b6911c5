// Invariant: when a buffer returns to its ring, its event has been recorded after all work that uses the buffer, even
// if the copy has failed.
#include "interpose/gpu/copies/pageable_copy.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/copies/pinned_by_program.h"
#include "interpose/gpu/work/device_range.h"
#include "runtime/base/log.h"
#include "runtime/os/virtual_memory.h"
#include "runtime/transfer/staging.h"

namespace hpe::cuda_hooks {

using device::cuda::uncaptured;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

using writing = transfer::copy_crew::writing;

// The number of bytes in the chunk that begins at byte `done` of the copy; if the copy has several rows, the chunk
// consists of whole rows.
std::size_t chunk_at(std::size_t done, const box_extent& extent) {
  const std::size_t chunk = transfer::next_chunk(done, extent.bytes() - done, pinned_ring::buffer_bytes);
  return extent.rows == 1 ? chunk : std::max(extent.width, chunk / extent.width * extent.width);
}

// hpe does not copy rows with fewer bytes: copy engines are slow with these rows, so hpe is not faster than the driver.
constexpr std::size_t narrowest_row = 512;

// Downloads of at least this many bytes make the pages of new memory with several threads.
constexpr std::size_t worth_new_pages = std::size_t{4} << 20;

}  // namespace

bool pageable_copy::is_pageable(const void* host, std::size_t bytes) const {
  // For an address that is neither pinned nor managed nor in device memory, the driver returns an error or type 0.
  const auto unknown = [&](CUdeviceptr address) {
    unsigned type = 0;
    return cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS || type == 0;
  };
  return unknown(number_of(host)) && unknown(number_of(host) + bytes - 1);
}

// The number of bytes from an address to the end of its allocation in device memory; 0 if no allocation contains the
// address.
std::size_t pageable_copy::bytes_from(CUdeviceptr address) const {
  const auto range = device_range_at(cu_, address);
  return range ? range->bytes - (address - range->base) : 0;
}

// Returns false for copies that hpe must leave to the driver: small copies, copies of several planes or of narrow or
// overlapping rows, copies during a capture, copies on a stream of another context, copies of managed or pinned memory,
// and invalid copies.
bool pageable_copy::suitable(const sides& what, CUstream stream) const {
  const auto& [width, rows, planes] = what.extent();
  if (what.extent().bytes() < smallest || what.host == nullptr || planes != 1) return false;
  if (rows > 1 && (cu_.cuMemcpy2DAsync == nullptr || width < narrowest_row || width > pinned_ring::buffer_bytes ||
                   what.in_device.strides.row < width || what.in_host.strides.row < width))
    return false;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cu_.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return false;
  CUcontext current = nullptr;
  CUcontext owner = nullptr;
  if (cu_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return false;
  if (cu_.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS || owner != current) return false;
  const std::size_t in_host = what.in_host.span();
  return what.in_device.span() <= bytes_from(what.device) &&
         saturated_sum(number_of(what.host), in_host) != too_many_bytes && is_pageable(what.host, in_host);
}

std::shared_ptr<context_parts> pageable_copy::parts_for(const sides& what, CUstream stream) {
  if (!suitable(what, stream)) return nullptr;
  const std::size_t bytes = what.extent().bytes();
  if (seen_.fetch_add(bytes, std::memory_order_relaxed) + bytes < worth_buffers) return nullptr;
  CUcontext current = nullptr;
  cu_.cuCtxGetCurrent(&current);
  try {
    std::shared_ptr<context_parts> parts = contexts_.of(current);
    (void)parts->ring();
    return parts;
  } catch (const error& e) {
    log(log_level::info, "large copies are left to the driver: {}", e.what());
    return nullptr;
  }
}

// Starts to copy bytes [at, at + bytes) of the data between the buffer `through` and the program's memory. `at` and
// `bytes` do not count gaps between rows.
transfer::copy_crew::pending pageable_copy::begin_chunk(const sides& what, std::size_t at, std::size_t bytes,
                                                        std::byte* through, bool up, transfer::copy_crew& crew,
                                                        writing how) {
  const std::size_t width = what.extent().width;
  box_copy shape{{bytes}};
  std::byte* host = what.host + at;
  if (what.extent().rows > 1) {
    shape = {{width, bytes / width, 1}, what.in_host.strides, what.in_host.strides};
    (up ? shape.to : shape.from) = {.row = width};
    host = what.host + at / width * what.in_host.strides.row;
  }
  return up ? crew.begin(through, host, shape, how) : crew.begin(host, through, shape, how);
}

writing pageable_copy::writing_to(void* host, std::size_t bytes) {
  if (bytes < worth_new_pages || !os::lacks_pages(host, bytes)) return writing::past_caches;
  os::allow_huge_pages(host, bytes);
  return writing::to_new_pages;
}

void pageable_copy::has_pinned(std::size_t bytes) noexcept {
  if (bytes < interpose::adopted_pointers::worth_copy_on_host) return;
  crew_.start();
  crew_for_new_pages_.start();
}

bool pageable_copy::copy_on_host(void* to, const void* from, std::size_t bytes) noexcept {
  const pinned_by_program& pinned = pinned_by_program::of_process();
  if (!crew_.started() || (!pinned.has(to, bytes) && !pinned.has(from, bytes))) return false;
  const bool more_threads = crew_for_new_pages_.started() && os::lacks_table_entries(from, bytes);
  (more_threads ? crew_for_new_pages_ : crew_).copy(to, from, bytes, writing::past_caches);
  return true;
}

CUresult pageable_copy::queue_chunk(const sides& what, std::size_t at, std::size_t bytes, std::byte* through,
                                    CUstream stream, bool up) const {
  if (what.extent().rows == 1)
    return up ? cu_.cuMemcpyAsync(what.device + at, number_of(through), bytes, stream)
              : cu_.cuMemcpyAsync(number_of(through), what.device + at, bytes, stream);
  CUDA_MEMCPY2D copy{};
  const std::size_t width = what.extent().width;
  const std::size_t device_row = what.in_device.strides.row;
  copy.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.srcHost = copy.dstHost = through;
  copy.srcDevice = copy.dstDevice = what.device + at / width * device_row;
  copy.srcPitch = up ? width : device_row;
  copy.dstPitch = up ? device_row : width;
  copy.WidthInBytes = width;
  copy.Height = bytes / width;
  return cu_.cuMemcpy2DAsync(&copy, stream);
}

std::optional<CUresult> pageable_copy::upload(CUdeviceptr to, const void* from, const box_copy& shape, CUstream stream,
                                              bool wait) {
  const sides what{to, static_cast<std::byte*>(const_cast<void*>(from)), shape.written(), shape.read()};
  const std::shared_ptr<context_parts> parts = parts_for(what, stream);
  if (parts == nullptr) return std::nullopt;
  const std::size_t bytes = shape.bytes();
  pinned_ring& ring = parts->ring();
  const uncaptured here(cu_);
  struct upload_chunk {
    pinned_ring::loan through;
    std::size_t at;
    std::size_t bytes;
    transfer::copy_crew::pending copy;  // finished before the buffer returns to the ring
  };
  // Page faults take about as much time as the copy itself, so a source that still needs them keeps more threads busy.
  const bool faults = bytes >= worth_new_pages && what.extent().rows == 1 && os::lacks_table_entries(from, bytes);
  transfer::copy_crew& crew = faults ? crew_for_new_pages_ : crew_;
  std::optional<upload_chunk> last;
  CUresult result = CUDA_SUCCESS;
  const auto queue_last = [&] {
    if (!last) return;
    last->copy.finish();
    if (result == CUDA_SUCCESS) {
      result = queue_chunk(what, last->at, last->bytes, last->through.data(), stream, true);
      const CUresult used = last->through.used_by(stream);
      if (result == CUDA_SUCCESS) result = used;
    }
    const bool is_end = last->at + last->bytes == bytes;
    if (result == CUDA_SUCCESS && wait && is_end) result = last->through.wait();
    last.reset();
  };
  for (std::size_t at = 0, part = 0; at < bytes && result == CUDA_SUCCESS; at += part) {
    part = chunk_at(at, what.extent());
    auto through = ring.try_take(stream);
    if (!through && at == 0) return std::nullopt;
    if (!through) {
      queue_last();  // two threads that hold a buffer while they wait for another one could deadlock
      through = ring.try_take(stream);
    }
    if (!through) through = ring.take();  // another thread copies on the same stream
    if (const CUresult free = through.wait(); free != CUDA_SUCCESS) {
      result = free;
      break;
    }
    // The threads of crew_ fill this buffer while this thread queues the copy of the previous buffer.
    auto copy = begin_chunk(what, at, part, through.data(), true, crew, transfer::copy_crew::to_stage(bytes));
    queue_last();
    last.emplace(upload_chunk{std::move(through), at, part, std::move(copy)});
  }
  queue_last();
  return result;
}

std::optional<CUresult> pageable_copy::download(void* to, CUdeviceptr from, const box_copy& shape, CUstream stream) {
  const sides what{from, static_cast<std::byte*>(to), shape.read(), shape.written()};
  const std::shared_ptr<context_parts> parts = parts_for(what, stream);
  if (parts == nullptr) return std::nullopt;
  const std::size_t bytes = shape.bytes();
  pinned_ring& ring = parts->ring();
  const uncaptured here(cu_);
  struct download_chunk {
    pinned_ring::loan through;
    std::size_t offset;
    std::size_t bytes;
  };
  struct arrived_chunk {
    pinned_ring::loan through;
    transfer::copy_crew::pending copy;  // finished before the buffer returns to the ring
  };
  std::deque<download_chunk> flying;   // the device copies these chunks to their buffers
  std::deque<arrived_chunk> arriving;  // the threads of a crew copy these chunks from their buffers
  const writing how = what.extent().rows == 1 ? writing_to(to, bytes) : writing::past_caches;
  // A slice of new pages is so large that several chunks are needed to keep all threads busy.
  const std::size_t most_arriving = how == writing::to_new_pages ? transfer::copy_crew::most_jobs : 1;
  CUresult result = CUDA_SUCCESS;
  std::size_t queued = 0;
  const auto queue = [&](pinned_ring::loan through) {
    result = through.wait();
    if (result != CUDA_SUCCESS) return;
    flying.push_back({std::move(through), queued, chunk_at(queued, what.extent())});
    download_chunk& next = flying.back();
    result = queue_chunk(what, next.offset, next.bytes, next.through.data(), stream, false);
    const CUresult used = next.through.used_by(stream);
    if (result == CUDA_SUCCESS) result = used;
    queued += next.bytes;
  };
  while (result == CUDA_SUCCESS && (queued < bytes || !flying.empty())) {
    while (result == CUDA_SUCCESS && queued < bytes) {
      auto through = ring.try_take(stream);
      if (!through) break;
      queue(std::move(through));
    }
    if (result != CUDA_SUCCESS) break;
    if (queued == 0) return std::nullopt;
    if (!flying.empty()) {
      download_chunk next = std::move(flying.front());
      flying.pop_front();
      result = next.through.wait();
      if (result != CUDA_SUCCESS) break;
      auto copy = begin_chunk(what, next.offset, next.bytes, next.through.data(), false, crew_for(how), how);
      arriving.push_back({std::move(next.through), std::move(copy)});
    }
    if (arriving.size() < most_arriving && !flying.empty()) continue;
    arrived_chunk done = std::move(arriving.front());
    arriving.pop_front();
    done.copy.finish();
    // If there is another chunk of this copy, uses the buffer for it at once.
    if (queued < bytes) queue(std::move(done.through));
  }
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
