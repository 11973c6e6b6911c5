// A touch holds the mutex but for the time in which it waits for the devices and copies; blocks are in state fetching
// then, and device work that is queued meanwhile takes them out of it, so that the late copy opens nothing (the
// protocol's own rule). Device work holds the mutex until it is queued, so a view cannot open between the release and
// the queuing.
//
// Regions are removed only by the program's giving memory back, which a thread that touches it at the same time must
// not do; the fetch looks its region up again all the same.
#include "interpose/cuda/adopted_memory.h"

#include <algorithm>

#include "interpose/cuda/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/trace/profile.h"

namespace hpe::cuda_hooks {

using coherence::apply;
using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using device::cuda::entered;

namespace {

CUdeviceptr page_begin(CUdeviceptr address) { return address / os::page_size() * os::page_size(); }
CUdeviceptr page_end(CUdeviceptr address) { return page_begin(address + os::page_size() - 1); }

constexpr std::size_t driver_alignment = 512;  // no two allocations in one of these

}  // namespace

// ---- what the driver knows ----------------------------------------------------------------------------------------

template <class Visit>
void adopted_memory::for_each_primary_context(Visit visit) const {
  int count = 0;
  if (cu_.cuDeviceGetCount(&count) != CUDA_SUCCESS) return;
  for (int d = 0; d < count; ++d) {
    CUdevice device = 0;
    unsigned flags = 0;
    int active = 0;
    CUcontext context = nullptr;
    if (cu_.cuDeviceGet(&device, d) != CUDA_SUCCESS ||
        cu_.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
        cu_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
      continue;
    visit(d, context);
    cu_.cuDevicePrimaryCtxRelease(device);
  }
}

void adopted_memory::wait_for_devices(CUcontext also) {
  bool waited = false;
  const auto wait_in = [&](CUcontext context) {
    const entered here(cu_, context);
    const CUresult result = cu_.cuCtxSynchronize();
    if (result != CUDA_SUCCESS)
      log(log_level::warn, "waiting for the devices before the host reads: {}", cu_.words_for(result));
    waited = waited || context == also;
  };
  for_each_primary_context([&](int, CUcontext context) { wait_in(context); });
  if (!waited) wait_in(also);
}

CUstream adopted_memory::stream_of(CUcontext context) {
  const std::lock_guard lock(streams_mutex_);
  CUstream& stream = streams_[context];
  if (stream == nullptr)
    cu_.check(cu_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
  return stream;
}

std::size_t adopted_memory::size_at(CUdeviceptr address) const noexcept {
  std::size_t result = 0;
  const auto ask = [&] {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    if (cu_.cuMemGetAddressRange(&base, &bytes, address) == CUDA_SUCCESS && base == address) result = bytes;
  };
  ask();
  // A thread without a context may give memory back too.
  if (result == 0)
    for_each_primary_context([&](int, CUcontext context) {
      const entered here(cu_, context);
      if (result == 0) ask();
    });
  return result;
}

adopted_region* adopted_memory::find(CUdeviceptr address) {
  const auto found = regions_.upper_bound(address);
  return found != regions_.end() && found->second->begin() <= address ? found->second.get() : nullptr;
}

adopted_region* adopted_memory::adopt(CUdeviceptr address) {
  adopted_region* made = nullptr;
  const auto look = [&](int device, CUcontext primary) {
    if (made != nullptr) return;
    const entered here(cu_, primary);
    unsigned type = 0;
    unsigned managed = 0;
    int owner = -1;
    CUcontext context = nullptr;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    if (cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE ||
        cu_.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS || managed != 0 ||
        cu_.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS ||
        cu_.cuMemGetAddressRange(&base, &bytes, address) != CUDA_SUCCESS)
      return;
    // Memory of pools and mappings belongs to no context: the primary one of its device serves.
    if (cu_.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS) context = nullptr;
    if (context == nullptr && owner != device) return;
    // Neighbours that share a page have it already.
    const auto next = regions_.upper_bound(address);
    const CUdeviceptr end =
        next != regions_.end() ? std::min(page_end(base + bytes), next->second->begin()) : page_end(base + bytes);
    const CUdeviceptr begin =
        next != regions_.begin() ? std::max(page_begin(base), std::prev(next)->first) : page_begin(base);
    auto region = std::make_unique<adopted_region>(begin, end, context != nullptr ? context : primary);
    made = region.get();
    regions_.emplace(end, std::move(region));
    if (touched_regions.fetch_add(1) == 0) {
      queuing_threads::wait_until_none();
      ++work_;  // nobody counted until now
    }
    log(log_level::info, "the host touches device memory at {:#x}; {} bytes are kept coherent from now on", address,
        end - begin);
  };
  for_each_primary_context(look);
  return made;
}

adopted_memory::regions::iterator adopted_memory::remove(regions::iterator r) {
  touched_regions.fetch_sub(1);
  return regions_.erase(r);
}

// ---- moving -------------------------------------------------------------------------------------------------------

void adopted_memory::move_piece(const adopted_region& r, CUdeviceptr begin, CUdeviceptr end, bool to_device,
                                CUstream stream) {
  std::byte* const host = r.alias(begin);
  const auto done = to_device ? copies_.upload(begin, host, end - begin, stream, true)
                              : copies_.download(host, begin, end - begin, stream);
  if (done) return cu_.check(*done, "a copy between device memory and the host's copy of it");
  const auto number = reinterpret_cast<CUdeviceptr>(host);
  cu_.check(to_device ? cu_.cuMemcpyAsync(begin, number, end - begin, stream)
                      : cu_.cuMemcpyAsync(number, begin, end - begin, stream),
            "a copy between device memory and the host's copy of it");
  cu_.check(cu_.cuStreamSynchronize(stream), "a copy between device memory and the host's copy of it");
}

void adopted_memory::move(const adopted_region& r, adopted_region::bytes range, bool to_device) {
  const entered here(cu_, r.context());
  const CUstream stream = stream_of(r.context());
  // One allocation after the other, and the gaps between them left out.
  for (CUdeviceptr at = range.begin; at < range.end;) {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    if (cu_.cuMemGetAddressRange(&base, &bytes, at) != CUDA_SUCCESS) {
      at = (at / driver_alignment + 1) * driver_alignment;
      continue;
    }
    const CUdeviceptr end = std::min(range.end, base + bytes);
    move_piece(r, at, end, to_device, stream);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver has addresses as numbers
    trace::moved(reinterpret_cast<void*>(r.begin()), r.end() - r.begin(), end - at, to_device);
    at = end;
  }
}

// ---- the host touches ---------------------------------------------------------------------------------------------

void adopted_memory::open(adopted_region& r, block_run run, block_event event) {
  const auto [next, actions] = apply(r.state(run.begin), event);
  if (actions.open_read) r.protect(run, os::access::read);
  if (actions.open_write) r.protect(run, os::access::read_write);
  r.set_state(run, next);
}

void adopted_memory::fetch(std::unique_lock<std::mutex>& lock, adopted_region& r, block_run run, bool write) {
  const CUdeviceptr first = r.bytes_of(run).begin;
  const std::uint64_t work = work_;
  const bool wait = waited_ != work;
  r.set_state(run, block_state::fetching);
  lock.unlock();
  try {
    if (wait) wait_for_devices(r.context());
    move(r, r.bytes_of(run), false);
  } catch (...) {
    lock.lock();
    if (find(first) == &r) r.set_state(run, block_state::device);
    throw;
  }
  lock.lock();
  if (find(first) != &r) return;
  waited_ = std::max(waited_, work);
  for (std::uint64_t b = run.begin; b < run.end;) {
    const block_run same = r.run_from(b, run.end);
    if (r.state(b) == block_state::fetching)
      open(r, same, write ? block_event::fetched_for_write : block_event::fetched);
    b = same.end;
  }
}

fault::verdict adopted_memory::touch(CUdeviceptr address, bool write) noexcept {
  try {
    std::unique_lock lock(mutex_);
    for (;;) {
      adopted_region* r = find(address);
      if (r == nullptr) r = adopt(address);
      if (r == nullptr) return fault::verdict::not_ours;
      const std::uint64_t block = r->block_of(address);
      const block_event event = write ? block_event::host_write : block_event::host_read;
      if (!apply(r->state(block), event).actions.fetch) {
        open(*r, {block, block + 1}, event);
        return fault::verdict::retry;
      }
      const block_run ahead = r->ahead.touched(block);
      fetch(lock, *r, r->run_from(block, std::max(block + 1, ahead.end)), write);
    }
  } catch (const std::exception& e) {
    log(log_level::error, "the device memory at {:#x} cannot be brought to the host: {}", address, e.what());
    return fault::verdict::not_ours;
  }
}

// ---- device work --------------------------------------------------------------------------------------------------

void adopted_memory::release(adopted_region& r, block_event event, CUdeviceptr begin, CUdeviceptr end) {
  const std::uint64_t last = r.block_of(std::min(end, r.end()) - 1) + 1;
  for (std::uint64_t b = r.block_of(std::max(begin, r.begin())); b < last;) {
    const block_run run = r.run_from(b, last);
    const auto [next, actions] = apply(r.state(b), event);
    // Closed before it is read, so that no write of the host is lost.
    if (actions.close || actions.upload) r.protect(run, os::access::none);
    if (actions.upload) move(r, r.bytes_of(run), true);
    if (actions.open_read) r.protect(run, os::access::read);
    r.set_state(run, next);
    b = run.end;
  }
}

template <class Release>
CUresult adopted_memory::begin_work_after(Release release_used) noexcept {
  mutex_.lock();
  ++work_;
  try {
    release_used();
    return CUDA_SUCCESS;
  } catch (const std::exception& e) {
    log(log_level::error, "what the host wrote to device memory cannot be taken there: {}", e.what());
    mutex_.unlock();
    return CUDA_ERROR_UNKNOWN;
  }
}

CUresult adopted_memory::begin_work() noexcept {
  static constexpr used_range everything{0, ~std::size_t{0}, true};
  return begin_work(std::span(&everything, 1));
}

CUresult adopted_memory::begin_work(std::span<const used_range> ranges) noexcept {
  return begin_work_after([&] {
    for (const used_range& used : ranges) {
      const CUdeviceptr end = used.address + used.bytes;
      for (auto it = regions_.upper_bound(used.address); it != regions_.end() && it->second->begin() < end; ++it)
        if (it->second->in_use())
          release(*it->second, used.written ? block_event::device_write : block_event::device_read, used.address, end);
    }
  });
}

CUresult adopted_memory::begin_work(std::span<const CUdeviceptr> addresses) noexcept {
  return begin_work_after([&] {
    for (const CUdeviceptr address : addresses)
      if (adopted_region* const r = find(address); r != nullptr && r->in_use())
        release(*r, block_event::device_write, r->begin(), r->end());
  });
}

void adopted_memory::end_work() noexcept { mutex_.unlock(); }

void adopted_memory::drop(CUdeviceptr address, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const CUdeviceptr begin = page_begin(address);
  const CUdeviceptr end = bytes > ~address ? ~CUdeviceptr{0} : page_end(address + bytes);
  for (auto it = regions_.upper_bound(begin); it != regions_.end() && it->second->begin() < end;) {
    try {
      // It may hold bytes of others.
      release(*it->second, block_event::device_write, 0, ~CUdeviceptr{0});
    } catch (const std::exception& e) {
      log(log_level::error, "what the host wrote to device memory cannot be taken there: {}", e.what());
    }
    it = remove(it);
  }
}

void adopted_memory::drop_all() noexcept {
  if (any()) drop(0, ~std::size_t{0});
  const std::lock_guard lock(streams_mutex_);
  for (const auto& [context, stream] : streams_) {
    const entered here(cu_, context);
    cu_.cuStreamDestroy(stream);
  }
  streams_.clear();
}

}  // namespace hpe::cuda_hooks
