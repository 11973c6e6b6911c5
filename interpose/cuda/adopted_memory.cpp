// fetching_ makes fetches one after another; whoever fetches holds mutex_ but for the time in which it waits for the
// devices and copies. Blocks are in state fetching then, and device work that is queued meanwhile takes them out of it,
// so that the late copy opens nothing (the protocol's own rule). Device work holds the mutex until it is queued, so a
// view cannot open between the release and the queuing.
//
// A region whose bytes are being fetched is not let go before the copy is done (adopted_region::in_motion), because the
// driver may take the memory away next.
//
// What a region has is worth nothing when its context has ended (context_parts::alive), however that happened: such a
// region is removed when it is found, and nothing of it is written anywhere.
#include "interpose/cuda/adopted_memory.h"

#include <algorithm>
#include <cstring>

#include "interpose/cuda/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using coherence::apply;
using coherence::block_event;
using coherence::block_run;
using coherence::block_state;

namespace {

CUdeviceptr page_begin(CUdeviceptr address) { return address / os::page_size() * os::page_size(); }
CUdeviceptr page_end(CUdeviceptr address) { return page_begin(address + os::page_size() - 1); }

constexpr CUdeviceptr last_address = ~CUdeviceptr{0};
constexpr std::size_t remembered_ends = 256;
constexpr std::size_t most_walks = 16;

}  // namespace

// ---- regions ------------------------------------------------------------------------------------------------------

adopted_memory::region_pointer adopted_memory::find(CUdeviceptr address) {
  const auto found = regions_.upper_bound(address);
  if (found == regions_.end() || found->second->begin() > address) return nullptr;
  if (found->second->parts().alive()) return found->second;
  remove(found);
  return nullptr;
}

adopted_memory::region_pointer adopted_memory::adopt(CUdeviceptr address) {
  const auto found = program_.device_memory_at(address);
  if (!found) return nullptr;
  // Neighbours that share a page have it already.
  const auto next = regions_.upper_bound(address);
  const CUdeviceptr last = page_end(found->base + found->bytes);
  const CUdeviceptr end = next != regions_.end() ? std::min(last, next->second->begin()) : last;
  const CUdeviceptr begin =
      next != regions_.begin() ? std::max(page_begin(found->base), std::prev(next)->first) : page_begin(found->base);
  const auto region = std::make_shared<adopted_region>(begin, end, parts_.of(found->context));
  regions_.emplace(end, region);
  marks_.set(begin, end, true);
  std::erase_if(ended_, [&](const auto& e) { return e.begin < end && begin < e.end; });
  if (touched_regions.fetch_add(1) == 0) {
    queuing_threads::wait_until_none();
    ++work_;  // nobody counted until now
  }
  log(log_level::info, "the host touches device memory at {:#x}; {} bytes are kept coherent from now on", address,
      end - begin);
  uses_.touched({begin, end});
  return region;
}

adopted_memory::region_pointer adopted_memory::find_or_adopt(CUdeviceptr address) {
  region_pointer found = find(address);
  return found != nullptr ? found : adopt(address);
}

adopted_memory::region_pointer adopted_memory::require(CUdeviceptr address) {
  region_pointer found = find_or_adopt(address);
  HPE_REQUIRE(found != nullptr, HPE_ERROR_NOT_A_REGION, "there is no device memory at {:#x}", address);
  return found;
}

adopted_memory::regions::iterator adopted_memory::remove(regions::iterator r) {
  touched_regions.fetch_sub(1);
  const region_pointer gone = r->second;
  gone->close();
  const auto next = regions_.erase(r);
  // Neighbours may be in the same granules.
  marks_.set(gone->begin(), gone->end(), false);
  if (next != regions_.end()) marks_.set(next->second->begin(), next->second->end(), true);
  if (next != regions_.begin()) marks_.set(std::prev(next)->second->begin(), std::prev(next)->second->end(), true);
  return next;
}

adopted_region::bytes adopted_memory::touched(CUdeviceptr address) {
  const std::lock_guard lock(mutex_);
  const region_pointer found = find(address);
  return found != nullptr ? adopted_region::bytes{found->begin(), found->end()} : adopted_region::bytes{0, 0};
}

std::size_t adopted_memory::bytes_from(CUdeviceptr address) const {
  const auto found = program_.device_memory_at(address);
  return found ? found->base + found->bytes - address : 0;
}

void adopted_memory::explain(CUdeviceptr address) const {
  for (const auto& e : ended_)
    if (e.begin <= address && address < e.end)
      log(log_level::error,
          "CPU code uses the device memory at {:#x}, which was freed when its context ended (cudaDeviceReset, "
          "cuDevicePrimaryCtxReset or cuCtxDestroy)",
          address);
}

// ---- moving -------------------------------------------------------------------------------------------------------

void adopted_memory::copy(adopted_region& r, CUdeviceptr device, void* host, std::size_t bytes, bool to_device) {
  const lent_stream lent(r.parts());
  const CUstream stream = lent.stream();
  const auto done =
      to_device ? copies_.upload(device, host, bytes, stream, true) : copies_.download(host, device, bytes, stream);
  constexpr const char* what = "a copy between device memory and the host's copy of it";
  if (done) return cu_.check(*done, what);
  const auto number = reinterpret_cast<CUdeviceptr>(host);
  cu_.check(
      to_device ? cu_.cuMemcpyAsync(device, number, bytes, stream) : cu_.cuMemcpyAsync(number, device, bytes, stream),
      what);
  cu_.check(cu_.cuStreamSynchronize(stream), what);
}

void adopted_memory::move(adopted_region& r, adopted_region::bytes range, bool to_device) {
  const device::cuda::entered here(cu_, r.parts().context());
  if (!to_device) r.prepare_pages(cu_, range);
  r.for_each_allocation(cu_, range, [&](CUdeviceptr begin, CUdeviceptr end) {
    copy(r, begin, r.alias(begin), end - begin, to_device);
    r.tell_moved(end - begin, to_device);
  });
}

void adopted_memory::wait_for_work(unique_lock& lock, const adopted_region& r) {
  const std::uint64_t work = work_;
  if (waited_ == work) return;
  lock.unlock();
  const CUresult result = program_.wait_for_all(r.parts().context());
  lock.lock();
  if (result == CUDA_SUCCESS) {
    waited_ = std::max(waited_, work);
  } else if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    uses_.warn(incoherent_uses::kind::capture, {r.begin(), r.end()});
  } else {
    log(log_level::warn, "waiting for the devices before the host reads: {}", cu_.words_for(result));
  }
}

// ---- the host touches ---------------------------------------------------------------------------------------------

void adopted_memory::open(adopted_region& r, block_run run, block_event event) {
  const auto [next, actions] = apply(r.state(run.begin), event);
  if (actions.open_read) r.protect(run, os::access::read);
  if (actions.open_write) r.protect(run, os::access::read_write);
  r.set_state(run, next);
}

void adopted_memory::open_fetched(adopted_region& r, block_run run, block_run markers, bool write) {
  for (std::uint64_t b = run.begin; b < run.end;) {
    block_run same = r.run_from(b, b < markers.end ? std::min(run.end, markers.end) : run.end);
    if (r.state(b) == block_state::fetching) {
      if (b < markers.end && markers.begin <= b)
        r.set_state(same, block_state::shared);  // both copies are good, and the view stays closed
      else
        open(r, same, write ? block_event::fetched_for_write : block_event::fetched);
    }
    b = same.end;
  }
}

void adopted_memory::fetch(unique_lock& lock, const region_pointer& r, block_run run) {
  if (!std::all_of(r->states(run).begin(), r->states(run).end(),
                   [](block_state b) { return b == block_state::device; }))
    return;  // the caller looks again
  // Before the wait: work that is queued meanwhile is not waited for, and takes its blocks out of this state.
  r->set_state(run, block_state::fetching);
  wait_for_work(lock, *r);
  if (find(r->begin()) != r) return;
  r->in_motion = true;
  lock.unlock();
  const auto landed = [&] {
    lock.lock();
    r->in_motion = false;
    moved_.notify_all();
  };
  try {
    move(*r, r->bytes_of(run), false);
  } catch (...) {
    landed();
    for (std::uint64_t b = run.begin; b < run.end; ++b)
      if (r->state(b) == block_state::fetching) r->set_state({b, b + 1}, block_state::device);
    throw;
  }
  landed();
}

fault::verdict adopted_memory::touch(CUdeviceptr address, bool write) noexcept {
  try {
    const std::lock_guard one(fetching_);
    unique_lock lock(mutex_);
    for (;;) {
      const region_pointer r = find_or_adopt(address);
      if (r == nullptr) return explain(address), fault::verdict::not_ours;
      const std::uint64_t block = r->block_of(address);
      const block_event event = write ? block_event::host_write : block_event::host_read;
      const bool fetched = !apply(r->state(block), event).actions.fetch;
      // A first write after reads is no step of a walk.
      if (!fetched || r->ahead.is_marker(block)) {
        const block_run next = r->ahead.touched(block);
        const block_run behind{std::max(next.begin, block + 1), next.end};
        if (!behind.empty()) ahead_.push_back({r, behind});
        if (ahead_.size() > most_walks) ahead_.pop_front();
      }
      if (fetched) {
        open(*r, {block, block + 1}, event);
        return fault::verdict::retry;
      }
      const block_run run{block, block + 1};
      fetch(lock, r, run);
      open_fetched(*r, run, {}, write);
      if (r->state(block) != block_state::device) return fault::verdict::retry;
    }
  } catch (const std::exception& e) {
    log(log_level::error, "the device memory at {:#x} cannot be brought to the host: {}", address, e.what());
    return fault::verdict::not_ours;
  }
}

bool adopted_memory::fetch_ahead() noexcept {
  constexpr std::uint64_t piece = 4;  // blocks; touches wait no longer than these take
  const std::lock_guard one(fetching_);
  unique_lock lock(mutex_);
  // Who touches it next waits for the devices; this does not, and after new work the host most often starts anew.
  if (waited_ != work_) ahead_.clear();
  while (!ahead_.empty()) {
    wish& w = ahead_.front();
    const region_pointer r = w.region.lock();
    const auto gone = [&] { return find(r->begin()) != r; };
    while (r != nullptr && !w.run.empty() && r->state(w.run.begin) != block_state::device) ++w.run.begin;
    if (r == nullptr || w.run.empty() || gone()) {
      ahead_.pop_front();
      continue;
    }
    const block_run run = r->run_from(w.run.begin, std::min(w.run.end, w.run.begin + piece));
    w.run.begin = run.end;
    const bool marked = r->ahead.is_marker(run.begin);
    try {
      fetch(lock, r, run);
      open_fetched(*r, run, marked ? block_run{run.begin, run.begin + 1} : block_run{}, false);
    } catch (const std::exception& e) {
      // Who touches it is told.
      log(log_level::debug, "device memory at {:#x} is not fetched ahead: {}", r->begin(), e.what());
      ahead_.clear();
      return false;
    }
    return true;
  }
  return false;
}

// ---- calls of the host --------------------------------------------------------------------------------------------

void adopted_memory::read(void* to, CUdeviceptr from, std::size_t bytes) {
  const std::lock_guard one(fetching_);
  unique_lock lock(mutex_);
  for (CUdeviceptr at = from; at < from + bytes;) {
    const region_pointer r = require(at);
    const CUdeviceptr end = std::min(from + bytes, r->end());
    const std::uint64_t last = r->block_of(end - 1) + 1;
    const block_run run = r->run_from(r->block_of(at), last);
    const CUdeviceptr good = std::min(end, r->bytes_of(run).end);
    if (r->state(run.begin) == block_state::device) {
      fetch(lock, r, run);
      open_fetched(*r, run, run, false);
      continue;
    }
    std::memcpy(static_cast<std::byte*>(to) + (at - from), r->alias(at), good - at);
    at = good;
  }
}

void adopted_memory::write(CUdeviceptr to, const void* from, std::size_t bytes) {
  const std::lock_guard one(fetching_);
  unique_lock lock(mutex_);
  for (CUdeviceptr at = to; at < to + bytes;) {
    const region_pointer r = require(at);
    wait_for_work(lock, *r);
    if (find(at) != r) continue;
    const auto* const source = static_cast<const std::byte*>(from) + (at - to);
    const CUdeviceptr end = std::min(to + bytes, r->end());
    const block_run run = r->run_from(r->block_of(at), r->block_of(end - 1) + 1);
    const CUdeviceptr good = std::min(end, r->bytes_of(run).end);
    if (r->state(run.begin) == block_state::host) {
      std::memcpy(r->alias(at), source, good - at);
    } else {
      release(*r, block_event::device_write, at, good);
      const device::cuda::entered here(cu_, r->parts().context());
      copy(*r, at, const_cast<std::byte*>(source), good - at, true);
      r->tell_moved(good - at, true);
    }
    at = good;
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
  static constexpr used_range everything{0, last_address, true};
  return begin_work(std::span(&everything, 1));
}

CUresult adopted_memory::begin_work(std::span<const used_range> ranges) noexcept {
  return begin_work_after([&] {
    for (const used_range& used : ranges) {
      const CUdeviceptr end = used.address + used.bytes;
      for (auto it = regions_.upper_bound(used.address); it != regions_.end() && it->second->begin() < end;) {
        const region_pointer r = it->second;
        if (r->in_use() && !r->parts().alive()) {
          it = remove(it);
          continue;
        }
        if (r->in_use())
          release(*r, used.written ? block_event::device_write : block_event::device_read, used.address, end);
        ++it;
      }
    }
  });
}

CUresult adopted_memory::begin_work(std::span<const CUdeviceptr> addresses) noexcept {
  return begin_work_after([&] {
    const auto use = [&](CUdeviceptr address) {
      if (const region_pointer r = find(address); r != nullptr && r->in_use())
        release(*r, block_event::device_write, r->begin(), r->end());
    };
    for (const CUdeviceptr address : addresses) use(address);
    uses_.for_each_texture(use);
  });
}

void adopted_memory::end_work() noexcept { mutex_.unlock(); }

// ---- memory goes --------------------------------------------------------------------------------------------------

void adopted_memory::drop(CUdeviceptr address, std::size_t bytes) noexcept {
  unique_lock lock(mutex_);
  const CUdeviceptr begin = page_begin(address);
  const CUdeviceptr end = bytes > last_address - address - os::page_size() ? last_address : page_end(address + bytes);
  for (auto it = regions_.upper_bound(begin); it != regions_.end() && it->second->begin() < end;) {
    if (it->second->in_motion) {
      moved_.wait(lock);
      it = regions_.upper_bound(begin);
      continue;
    }
    try {
      // It may hold bytes of others.
      if (it->second->parts().alive()) release(*it->second, block_event::device_write, 0, last_address);
    } catch (const std::exception& e) {
      log(log_level::error, "what the host wrote to device memory cannot be taken there: {}", e.what());
    }
    it = remove(it);
  }
}

void adopted_memory::drop_all() noexcept {
  if (!any()) return;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [end, r] : regions_) ended_.push_back({r->begin(), end});
    while (ended_.size() > remembered_ends) ended_.pop_front();
  }
  drop(0, last_address);
}

}  // namespace hpe::cuda_hooks
