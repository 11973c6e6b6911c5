// Device work. With the mutex locked, begin_work() uploads the bytes that CPU code has written and adds the work to the
// list of work in flight. When the driver has queued the work, end_work() removes the work from the list. In between,
// the blocks that the work writes are in state device, and a thread that fetches one of these blocks waits until the
// work is queued.
//
// Fetches. fetching_ serialises them. The thread that fetches holds mutex_, but unlocks it during three waits: until
// other threads have queued their work, until the devices have done this work, and until the copy is done. During the
// last two waits, the blocks are in state fetching. If the program queues device work on the blocks in the meantime,
// the state of the blocks changes. The copy is then out of date, and hpe opens no view of it (a rule of the protocol).
//
// If another thread is fetching bytes of the region (adopted_region::in_motion), drop() waits for that copy, because
// the driver may free the memory as soon as drop() returns.
//
// When the context of a region has ended, the region's data is lost. find() removes this region without copying any
// bytes (context_parts::alive shows whether the context has ended).
#include "interpose/gpu/adopted/adopted_memory.h"

#include <algorithm>
#include <cstring>

#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/driver_writes.h"
#include "interpose/gpu/work/queuing_threads.h"
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
  // Neighbouring regions already contain the pages that they share with this allocation.
  const auto next = regions_.upper_bound(address);
  const CUdeviceptr last = page_end(found->base + found->bytes);
  const CUdeviceptr end = next != regions_.end() ? std::min(last, next->second->begin()) : last;
  const CUdeviceptr begin =
      next != regions_.begin() ? std::max(page_begin(found->base), std::prev(next)->first) : page_begin(found->base);
  auto region = std::make_shared<adopted_region>(begin, end, parts_.of(found->context));
  regions_.emplace(end, region);
  marks_.set(begin, end, true);
  std::erase_if(ended_, [&](const auto& e) { return e.begin < end && begin < e.end; });
  if (touched_regions.fetch_add(1) == 0) {
    call_watch::begin(call_watch::touched);
    unseen_ = true;
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
  if (touched_regions.fetch_sub(1) == 1) call_watch::end(call_watch::touched);
  const region_pointer gone = r->second;
  gone->close();
  const auto next = regions_.erase(r);
  // This call also clears the marks of granules that a neighbouring region shares; the next lines set them again.
  marks_.set(gone->begin(), gone->end(), false);
  if (next != regions_.end()) marks_.set(next->second->begin(), next->second->end(), true);
  if (next != regions_.begin()) marks_.set(std::prev(next)->second->begin(), std::prev(next)->second->end(), true);
  return next;
}

bool adopted_memory::has_touched(CUdeviceptr begin, CUdeviceptr end) {
  if (!any()) return false;
  const lock_guard lock(mutex_);
  const auto next = regions_.upper_bound(begin);
  return next != regions_.end() && next->second->begin() < end;
}

adopted_region::bytes adopted_memory::touched(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  const region_pointer found = find(address);
  return found != nullptr ? adopted_region::bytes{found->begin(), found->end()} : adopted_region::bytes{0, 0};
}

void adopted_memory::left_to_library(CUdeviceptr address) noexcept {
  try {
    if (const auto found = program_.device_memory_at(address))
      uses_.shares(incoherent_use::messages, {found->base, found->base + found->bytes}, touched(address));
  } catch (const std::bad_alloc&) {
    // hpe cannot warn later.
  }
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

// ---- device work --------------------------------------------------------------------------------------------------

void adopted_memory::release(adopted_region& r, block_event event, CUdeviceptr begin, CUdeviceptr end) {
  const std::uint64_t last = r.block_of(std::min(end, r.end()) - 1) + 1;
  for (std::uint64_t b = r.block_of(std::max(begin, r.begin())); b < last;) {
    const block_run run = r.run_from(b, last);
    const auto actions = apply(r.state(b), event).actions;
    // Closes the view before the upload reads the bytes, so that no write by CPU code is lost.
    if (actions.close || actions.upload) r.protect(run, os::page_protection::none);
    if (actions.upload) move(r, r.bytes_of(run), true);
    if (actions.open_read) r.protect(run, os::page_protection::read);
    r.transition(run, event);
    b = run.end;
  }
}

template <class Release>
CUresult adopted_memory::begin_work_after(work_in_flight& work, Release release_used) noexcept {
  const lock_guard lock(mutex_);
  try {
    release_used();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    log(log_level::error, "what the host wrote to device memory cannot be uploaded: {}", e.what());
    return CUDA_ERROR_UNKNOWN;
  }
  work.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &work;
  first_ = &work;
  return CUDA_SUCCESS;
}

CUresult adopted_memory::begin_work(work_in_flight& work) noexcept {
  static constexpr used_range everything{0, last_address, true};
  return begin_work(work, std::span(&everything, 1));
}

CUresult adopted_memory::begin_work(work_in_flight& work, std::span<const used_range> ranges) noexcept {
  return begin_work_after(work, [&]() HPE_REQUIRES(mutex_) {
    for (const used_range& used : ranges) {
      const CUdeviceptr end = used.end();
      if (used.written) work.may_write({used.address, end});
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

CUresult adopted_memory::begin_work(work_in_flight& work, std::span<const CUdeviceptr> addresses) noexcept {
  return begin_work_after(work, [&]() HPE_REQUIRES(mutex_) {
    const auto use = [&](CUdeviceptr address) HPE_REQUIRES(mutex_) {
      const region_pointer r = find(address);
      if (r == nullptr || !r->in_use()) return;
      work.may_write({r->begin(), r->end()});
      release(*r, block_event::device_write, r->begin(), r->end());
    };
    for (const CUdeviceptr address : addresses) use(address);
    uses_.for_each_texture([&](CUdeviceptr address) {
      mutex_.assert_held();
      use(address);
    });
  });
}

void adopted_memory::end_work(work_in_flight& work) noexcept {
  const lock_guard lock(mutex_);
  ++work_;
  (work.previous_ != nullptr ? work.previous_->next_ : first_) = work.next_;
  if (work.next_ != nullptr) work.next_->previous_ = work.previous_;
  queued_.notify_all();
}

bool adopted_memory::being_queued(adopted_region::bytes range) const noexcept {
  for (const work_in_flight* work = first_; work != nullptr; work = work->next_)
    if (work->writes(range)) return true;
  return unseen_;
}

void adopted_memory::wait_until_queued(unique_lock& lock, adopted_region::bytes range) {
  while (being_queued(range)) {
    if (!unseen_) {
      queued_.wait(lock);
      continue;
    }
    mutex_.unlock();
    queuing_threads::wait_until_none();
    mutex_.lock();
    unseen_ = false;
    ++work_;  // counts all work that was queued before the first touch as one piece of work
  }
}

// ---- memory that the program frees --------------------------------------------------------------------------------

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
      // The region may also contain bytes of other allocations, which must not be lost.
      if (it->second->parts().alive()) release(*it->second, block_event::device_write, 0, last_address);
    } catch (const std::exception& e) {
      log(log_level::error, "what the host wrote to device memory cannot be uploaded: {}", e.what());
    }
    it = remove(it);
  }
}

void adopted_memory::drop_all() noexcept {
  if (!any()) return;
  try {
    const lock_guard lock(mutex_);
    for (const auto& [end, r] : regions_) ended_.push_back({r->begin(), end});
    while (ended_.size() > remembered_ends) ended_.pop_front();
  } catch (const std::bad_alloc&) {  // only explain() uses ended_, so the list may be incomplete
  }
  drop(0, last_address);
}

namespace {

constexpr std::size_t most_walks = 16;

// Unlocks a mutex until the end of a scope, even if an exception ends the scope.
class HPE_SCOPED_CAPABILITY unlocked {
 public:
  explicit unlocked(mutex& held) HPE_RELEASE(held) : held_(held) { held_.unlock(); }
  ~unlocked() HPE_RELEASE() { held_.lock(); }
  unlocked(const unlocked&) = delete;
  unlocked& operator=(const unlocked&) = delete;

 private:
  mutex& held_;
};

}  // namespace

// ---- copies between host and device -------------------------------------------------------------------------------

void adopted_memory::copy(adopted_region& r, CUdeviceptr device, void* host, std::size_t bytes, bool to_device) {
  const lent_stream lent(r.parts());
  const CUstream stream = lent.stream();
  const auto done =
      to_device ? copies_.upload(device, host, bytes, stream, true) : copies_.download(host, device, bytes, stream);
  constexpr const char* what = "copying data between device memory and host memory";
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
    if (to_device) driver_writes::count();
    r.tell_moved(end - begin, to_device);
  });
}

void adopted_memory::wait_for_work(const adopted_region& r) {
  if (deferred_copies::any()) {
    const unlocked here(mutex_);
    deferred_.finish_or_tell("CPU code reads their memory");
  }
  const std::uint64_t work = work_;
  if (waited_ == work) return;
  CUresult result = CUDA_SUCCESS;
  {
    const unlocked here(mutex_);
    result = program_.wait_for_all(r.parts().context());
  }
  if (result == CUDA_SUCCESS) {
    waited_ = std::max(waited_, work);
  } else if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    uses_.warn(incoherent_use::capture, {r.begin(), r.end()});
  } else {
    log(log_level::warn, "waiting for the devices before the host reads: {}", cu_.words_for(result));
  }
}

// ---- touches by CPU code ------------------------------------------------------------------------------------------

void adopted_memory::open(adopted_region& r, block_run run, block_event event) {
  const auto actions = apply(r.state(run.begin), event).actions;
  if (actions.open_read) r.protect(run, os::page_protection::read);
  if (actions.open_write) r.protect(run, os::page_protection::read_write);
  r.transition(run, event);
}

void adopted_memory::open_fetched(adopted_region& r, block_run run, block_run markers, bool write) {
  for (std::uint64_t b = run.begin; b < run.end;) {
    block_run same = r.run_from(b, b < markers.end ? std::min(run.end, markers.end) : run.end);
    if (r.state(b) == block_state::fetching) {
      if (b < markers.end && markers.begin <= b)
        r.transition(same, block_event::fetched);  // both copies are valid, and the view stays closed
      else
        open(r, same, write ? block_event::fetched_for_write : block_event::fetched);
    }
    b = same.end;
  }
}

void adopted_memory::fetch(unique_lock& lock, const region_pointer& r, block_run run) {
  wait_until_queued(lock, r->bytes_of(run));
  if (find(r->begin()) != r || r->state(run.begin) != block_state::device ||
      r->run_from(run.begin, run.end).end != run.end)
    return;  // the caller checks the state again
  // Sets the state to fetching before wait_for_work(). wait_for_work() does not wait for work that the program queues
  // in the meantime. That work changes the state of the blocks that it uses, so that open_fetched() does not open these
  // blocks.
  r->transition(run, block_event::prefetch);
  const auto landed = [&]() HPE_REQUIRES(mutex_) {
    r->in_motion = false;
    moved_.notify_all();
  };
  try {
    wait_for_work(*r);
    if (find(r->begin()) != r) return;
    r->in_motion = true;
    const unlocked here(mutex_);
    move(*r, r->bytes_of(run), false);
  } catch (...) {
    landed();
    r->transition(run, block_event::fetch_failed);
    throw;
  }
  landed();
}

os::fault_verdict adopted_memory::touch(CUdeviceptr address, bool write) noexcept {
  try {
    const lock_guard one(fetching_);
    unique_lock lock(mutex_);
    for (;;) {
      const region_pointer r = find_or_adopt(address);
      if (r == nullptr) return explain(address), os::fault_verdict::not_ours;
      const std::uint64_t block = r->block_of(address);
      const block_event event = write ? block_event::host_write : block_event::host_read;
      const bool fetched = !apply(r->state(block), event).actions.fetch;
      // The first write to a block that CPU code has already read is not a step of a walk through memory.
      if (!fetched || r->ahead.is_marker(block)) {
        const block_run next = r->ahead.touched(block);
        const block_run behind{std::max(next.begin, block + 1), next.end};
        if (!behind.empty()) ahead_.push_back({r, behind});
        if (ahead_.size() > most_walks) ahead_.pop_front();
      }
      if (fetched) {
        open(*r, {block, block + 1}, event);
        return os::fault_verdict::retry;
      }
      const block_run run{block, block + 1};
      fetch(lock, r, run);
      open_fetched(*r, run, {}, write);
      if (r->state(block) != block_state::device) return os::fault_verdict::retry;
    }
  } catch (const std::exception& e) {
    log(log_level::error, "the device memory at {:#x} cannot be brought to the host: {}", address, e.what());
    return os::fault_verdict::not_ours;
  }
}

bool adopted_memory::fetch_ahead() noexcept {
  constexpr std::uint64_t blocks_of_one_copy = 4;  // a touch waits for at most one such copy
  const lock_guard one(fetching_);
  unique_lock lock(mutex_);
  // The program has queued work since the last wait. fetch_ahead does not wait for that work, because CPU code usually
  // begins a new walk after new work.
  if (waited_ != work_) ahead_.clear();
  while (!ahead_.empty()) {
    wish& w = ahead_.front();
    const region_pointer r = w.region.lock();
    const auto gone = [&]() HPE_REQUIRES(mutex_) { return find(r->begin()) != r; };
    while (r != nullptr && !w.run.empty() && r->state(w.run.begin) != block_state::device) ++w.run.begin;
    if (r == nullptr || w.run.empty() || gone()) {
      ahead_.pop_front();
      continue;
    }
    const block_run run = r->run_from(w.run.begin, std::min(w.run.end, w.run.begin + blocks_of_one_copy));
    if (being_queued(r->bytes_of(run))) {
      ahead_.pop_front();
      continue;
    }
    w.run.begin = run.end;
    const bool marked = r->ahead.is_marker(run.begin);
    try {
      fetch(lock, r, run);
      open_fetched(*r, run, marked ? block_run{run.begin, run.begin + 1} : block_run{}, false);
    } catch (const std::exception& e) {
      // The next touch of these blocks reports the error.
      log(log_level::debug, "device memory at {:#x} cannot be fetched in advance: {}", r->begin(), e.what());
      ahead_.clear();
      return false;
    }
    return true;
  }
  return false;
}

// ---- reads and writes for libc and MPI calls ----------------------------------------------------------------------

void adopted_memory::read(void* to, CUdeviceptr from, std::size_t bytes) {
  const lock_guard one(fetching_);
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
  const lock_guard one(fetching_);
  unique_lock lock(mutex_);
  for (CUdeviceptr at = to; at < to + bytes;) {
    const region_pointer r = require(at);
    wait_until_queued(lock, {r->begin(), r->end()});
    wait_for_work(*r);
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

}  // namespace hpe::cuda_hooks
