// Invariants: pinned ranges are disjoint, and each pinned range is inside one registered range. A pinned range whose
// `pinned` is false belongs to one thread. This thread, without the mutex, either pins the range and then marks it as
// pinned, or unpins the range and then erases it. A pinned range is unpinned only when no thread is queuing a copy on
// it and all timepoints in `users` are reached. Copies never cross the end of a pinned range, because the driver would
// refuse these copies.
#include "runtime/device/cuda/cuda_pinned_memory.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::cuda {

namespace {

// Pinning takes 180 us for each range plus 25 us for each MiB (H200, ranges of 2 MiB and 32 MiB whose pages existed).
// So a pinned range directly after another pinned range is at least twice as large as that range, and a first copy pins
// only its own bytes, rounded up to smallest_range.
constexpr std::size_t smallest_range = granule_size;
constexpr std::size_t largest_range = 16 * granule_size;

// Threads that pin ahead of copies pin ranges of this size. With ranges of 8 MiB, the fixed time for each range is too
// large a part of the total; with 32 MiB, the first copies start late.
constexpr std::size_t expected_range = 8 * granule_size;
// When the first bytes are expected, all threads are idle. The threads divide a short expected range among themselves,
// into parts of at least this size.
constexpr std::size_t least_expected_range = 2 * granule_size;

// The driver holds a lock while it registers memory, and needs the same lock to queue a copy. So only one of the
// threads that pin ahead registers memory at a time. After each registration, the thread pauses for this time, in which
// other threads can queue copies. (H200: copies of untouched memory run at 21.7 GB/s instead of 19.4 GB/s.)
constexpr std::chrono::microseconds between_registrations{50};

// Prepared ranges that no copy has used occupy at most 1 / share_of_free_memory of the host memory that is free. The
// threads query the free memory again after each prepared_between_checks prepared bytes.
constexpr double share_of_free_memory = 4;
constexpr std::size_t prepared_between_checks = 128 * granule_size;

// At most eight threads pin ahead: more threads would only wait for locks of the operating system and of the driver.
unsigned thread_count() { return std::clamp(os::usable_cores() / 2, 1U, 8U); }

void* host_pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the address was a pointer before
}

}  // namespace

cuda_pinned_memory::cuda_pinned_memory(const driver& cu, const uvas_layout& layout, budgets most, environment around)
    : cu_(cu), layout_(layout), most_(most), around_(std::move(around)) {}

cuda_pinned_memory::~cuda_pinned_memory() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
  for (const auto& [begin, p] : pinned_ranges_) cu_.cuMemHostUnregister(host_pointer(begin));
}

bool cuda_pinned_memory::in_space(std::uintptr_t address) const noexcept {
  return layout_.contains(host_pointer(address));
}

void cuda_pinned_memory::insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  HPE_REQUIRE(bytes != 0 && !registered_ranges_.overlaps(address, address + bytes), HPE_ERROR_INVALID_ARGUMENT,
              "a part of the {} bytes at {:#x} is registered already", bytes, address);
  const bool for_kernels = in_space(address);
  const auto noted = registered_ranges_.insert(address, address + bytes, registered_range{for_kernels});
  if (!for_kernels) return;
  try {
    // Insert the pinned range before its pages are pinned, so that no statement after the pinning can throw.
    const auto pinned = pinned_ranges_.insert(address, address + bytes, pinned_range{.pinned = true});
    try {
      pin_for_kernels(address, bytes, fd, offset);
    } catch (...) {
      pinned_ranges_.erase(pinned);
      throw;
    }
  } catch (...) {
    registered_ranges_.erase(noted);
    throw;
  }
}

void cuda_pinned_memory::pin_for_kernels(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset) const {
  // The pages must be accessible while they are pinned; later mappings over these addresses do not affect the pinned
  // pages.
  os::map_file(host_pointer(address), bytes, os::page_protection::read_write, fd, static_cast<std::uint64_t>(offset));
  const CUresult result =
      cu_.cuMemHostRegister(host_pointer(address), bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS) return;
  os::unmap_to_reserved(host_pointer(address), bytes);
  HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{} bytes of host memory cannot be pinned for the devices: {}", bytes,
            cu_.words_for(result));
}

void cuda_pinned_memory::erase(std::uintptr_t address, std::size_t bytes) {
  release(address, bytes);
  const std::lock_guard lock(mutex_);
  const auto found = registered_ranges_.find(address);
  HPE_REQUIRE(found != registered_ranges_.end() && found->first == address && found->second.end == address + bytes,
              HPE_ERROR_INVALID_ARGUMENT, "the {} bytes at {:#x} were not registered", bytes, address);
  if (found->second.value.in_space) os::unmap_to_reserved(host_pointer(address), bytes);
  registered_ranges_.erase(found);
}

void cuda_pinned_memory::release(std::uintptr_t address, std::size_t bytes) {
  locked lock(mutex_);
  const std::uintptr_t end = address + bytes;
  for (unpinned_ranges* const ranges : {&expected_, &to_prepare_}) {
    unpinned_ranges kept;
    for (const unpinned_range& g : *ranges) {
      if (g.begin < address) kept.push_back({g.begin, std::min(g.end, address)});
      if (g.end > end) kept.push_back({std::max(g.begin, end), g.end});
    }
    *ranges = std::move(kept);
  }
  for (;;) {
    const auto p = pinned_ranges_.from(address);
    if (p == pinned_ranges_.end() || p->first >= end) return;
    if (!p->second.value.pinned) {
      changed_.wait(lock);
      continue;
    }
    if (idle(p->second.value)) {
      unpin(lock, p);
      continue;
    }
    // Copies of neighbouring bytes may use the pinned range. Wait for these copies without the mutex, then search
    // again.
    const std::vector<timepoint> users = p->second.value.users;
    lock.unlock();
    for (const timepoint user : users) around_.wait(user);
    std::this_thread::yield();
    lock.lock();
  }
}

std::optional<std::uintptr_t> cuda_pinned_memory::find(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = registered_ranges_.find(address);
  if (found == registered_ranges_.end()) return std::nullopt;
  return found->second.end;
}

cuda_pinned_memory::pinned_use cuda_pinned_memory::begin(std::uintptr_t address, std::size_t bytes) {
  locked lock(mutex_);
  auto p = find_pinned(lock, address);
  if (p == pinned_ranges_.end()) {
    make_room(lock, range_for_copy(address, bytes).size());
    p = find_pinned(lock, address);
    if (p == pinned_ranges_.end() && pin(lock, range_for_copy(address, bytes), purpose::copy))
      p = find_pinned(lock, address);
  }
  if (p == pinned_ranges_.end()) {
    auto next = pinned_ranges_.from(address);
    // Another thread has inserted this pinned range and is pinning it.
    if (next != pinned_ranges_.end() && next->first <= address) ++next;
    return {0, next == pinned_ranges_.end() ? address + bytes : std::min(next->first, address + bytes)};
  }
  pinned_range& found = p->second.value;
  found.users.reserve(found.users.size() + found.busy + 1);  // so that done() allocates nothing
  ++found.busy;
  found.age = ++clock_;
  count_as_used(found, p->second.end - p->first);
  return {p->first, std::min(p->second.end, address + bytes)};
}

void cuda_pinned_memory::count_as_used(pinned_range& p, std::size_t bytes) {
  if (!std::exchange(p.prepared, false)) return;
  prepared_ -= bytes;
  if (!to_prepare_.empty()) changed_.notify_all();  // the budget of prepared ranges now has free bytes
}

cuda_pinned_memory::pinned_ranges::iterator cuda_pinned_memory::find_pinned(locked& lock, std::uintptr_t address) {
  for (;;) {
    const auto p = pinned_ranges_.find(address);
    if (p == pinned_ranges_.end() || p->second.value.pinned) return p;
    changed_.wait(lock);
  }
}

void cuda_pinned_memory::done(std::span<const pinned_use> uses, timepoint by) noexcept {
  const std::lock_guard lock(mutex_);
  for (const pinned_use& u : uses) {
    if (u.begin == 0) continue;
    pinned_range& p = pinned_ranges_.find(u.begin)->second.value;
    --p.busy;
    if (by.none()) continue;
    const auto same = std::find_if(p.users.begin(), p.users.end(),
                                   [&](const timepoint& user) { return user.timeline == by.timeline; });
    if (same == p.users.end()) {
      p.users.push_back(by);
    } else {
      same->value = std::max(same->value, by.value);
    }
  }
}

cuda_pinned_memory::unpinned_range cuda_pinned_memory::range_for_copy(std::uintptr_t address, std::size_t bytes) const {
  const auto in = registered_ranges_.find(address);
  HPE_INVARIANT(in != registered_ranges_.end());
  unpinned_range result{address / smallest_range * smallest_range,
                        round_up(address + std::min(bytes, largest_range), smallest_range)};
  const auto next = pinned_ranges_.from(address);  // no pinned range contains the address
  if (next != pinned_ranges_.begin()) {
    const auto& [previous_begin, previous] = *std::prev(next);
    result.begin = std::max(result.begin, previous.end);
    // If copies are expected, the threads pin the following bytes, so this copy pins only its own bytes. Otherwise the
    // new range is at least twice as large as the pinned range directly before it.
    if (previous.end == result.begin && expected_.empty() && to_prepare_.empty())
      result.end = std::max(result.end, result.begin + std::min(2 * (previous.end - previous_begin), largest_range));
  }
  result.begin = std::max(result.begin, in->first);
  result.end = std::min(result.end, in->second.end);
  if (next != pinned_ranges_.end()) result.end = std::min(result.end, next->first);
  return result;
}

CUresult cuda_pinned_memory::register_in_turn(unpinned_range where) {
  const std::lock_guard lock(registering_);
  const CUresult result = cu_.cuMemHostRegister(host_pointer(where.begin), where.size(), CU_MEMHOSTREGISTER_PORTABLE);
  const auto end = std::chrono::steady_clock::now() + between_registrations;
  while (std::chrono::steady_clock::now() < end) __builtin_ia32_pause();
  return result;
}

bool cuda_pinned_memory::pin(locked& lock, unpinned_range where, purpose why) {
  const bool prepares = why == purpose::preparation;
  const std::size_t bytes = where.size();
  if (pinned_ + bytes > most_.pinned) return false;
  pinned_ranges_.insert(where.begin, where.end, pinned_range{.prepared = prepares, .age = ++clock_});
  pinned_ += bytes;
  if (prepares) prepared_ += bytes;
  lock.unlock();
  os::populate_with_huge_pages(host_pointer(where.begin), bytes);
  const CUresult result = why == purpose::copy
                              ? cu_.cuMemHostRegister(host_pointer(where.begin), bytes, CU_MEMHOSTREGISTER_PORTABLE)
                              : register_in_turn(where);
  lock.lock();
  const auto made = pinned_ranges_.find(where.begin);
  if (result == CUDA_SUCCESS) {
    made->second.value.pinned = true;
  } else {
    log(log_level::debug, "{} bytes of host memory cannot be pinned: {}", bytes, cu_.words_for(result));
    count_as_used(made->second.value, bytes);
    pinned_ranges_.erase(made);
    pinned_ -= bytes;
  }
  changed_.notify_all();
  return result == CUDA_SUCCESS;
}

void cuda_pinned_memory::expect(std::uintptr_t address, std::size_t bytes) { add(expected_, address, bytes); }

void cuda_pinned_memory::prepare(std::uintptr_t address, std::size_t bytes) {
  if (most_.prepared != 0) add(to_prepare_, address, bytes);
}

std::size_t cuda_pinned_memory::prepared(std::uintptr_t address, std::size_t bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  std::uintptr_t at = address;
  for (auto p = pinned_ranges_.find(at); p != pinned_ranges_.end() && p->second.value.pinned && at < address + bytes;
       p = pinned_ranges_.find(at))
    at = p->second.end;
  return std::min(at - address, bytes);
}

void cuda_pinned_memory::add(unpinned_ranges& ranges, std::uintptr_t address, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto in = registered_ranges_.find(address);
    if (bytes == 0 || in == registered_ranges_.end()) return;
    const unpinned_range all{address / smallest_range * smallest_range,
                             std::min(round_up(address + bytes, smallest_range), in->second.end)};
    const auto there = pinned_ranges_.find(all.begin);
    const bool nothing_left = there != pinned_ranges_.end() && there->second.end >= all.end;
    const bool known = std::any_of(ranges.begin(), ranges.end(),
                                   [&](const unpinned_range& g) { return g.begin <= all.begin && all.end <= g.end; });
    if (nothing_left || known) return;
    ranges.push_back(all);
    ++requests_;
    try {
      while (threads_.size() < thread_count())
        threads_.push_back(os::start_thread("hpe-pin", [this] { work_ahead(); }));
    } catch (const error&) {
      // Drop the ranges, which are only hints: each copy pins the memory that it needs.
      if (threads_.empty()) ranges.clear();
    }
  }
  changed_.notify_all();
}

cuda_pinned_memory::unpinned_range cuda_pinned_memory::next(unpinned_ranges& ranges, std::size_t most) {
  while (!ranges.empty()) {
    unpinned_range& first = ranges.front();
    // The result begins after the pinned range that contains first.begin, and ends at the next pinned range.
    if (const auto in = pinned_ranges_.find(first.begin); in != pinned_ranges_.end()) first.begin = in->second.end;
    const auto next = pinned_ranges_.from(first.begin);
    const std::size_t share = round_up((first.end - first.begin) / (idle_ + 1), granule_size);
    const std::size_t size = std::min(std::clamp(share, least_expected_range, expected_range), most);
    const unpinned_range result{
        first.begin, std::min({first.end, first.begin + size, next == pinned_ranges_.end() ? first.end : next->first})};
    if (result.begin >= first.end) {
      ranges.pop_front();
      continue;
    }
    if (result.begin == result.end) continue;  // a pinned range begins here
    first.begin = result.end;
    return result;
  }
  return {};
}

cuda_pinned_memory::unpinned_range cuda_pinned_memory::next_to_prepare(locked& lock) {
  const auto left = [&] {
    return (most_.prepared - std::min(prepared_, most_.prepared)) / granule_size * granule_size;
  };
  if (to_prepare_.empty() || left() == 0) return {};
  while (unchecked_ == 0) {
    const std::uint64_t requests = requests_;
    lock.unlock();
    const double free = around_.free_memory();
    lock.lock();
    const double allowed = free / share_of_free_memory - static_cast<double>(prepared_);
    unchecked_ = static_cast<std::size_t>(std::clamp(allowed, 0.0, static_cast<double>(prepared_between_checks))) /
                 granule_size * granule_size;
    // A request that came meanwhile may know that more memory is free now: look again for it.
    if (unchecked_ == 0 && requests_ == requests) to_prepare_.clear();
    if (to_prepare_.empty() || left() == 0) return {};
  }
  const unpinned_range result = next(to_prepare_, std::min(left(), unchecked_));
  unchecked_ -= result.size();
  return result;
}

void cuda_pinned_memory::work_ahead() {
  locked lock(mutex_);
  while (!stop_) {
    if (!expected_.empty() || !to_prepare_.empty()) {
      const entered here(cu_, around_.context());
      make_room(lock, std::min(expected_range, most_.pinned));
    }
    unpinned_range where = next(expected_, expected_range);
    const bool prepares = where.size() == 0;
    if (prepares) where = next_to_prepare(lock);
    if (stop_) return;
    if (where.size() == 0) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
      continue;
    }
    const entered here(cu_, around_.context());
    if (pin(lock, where, prepares ? purpose::preparation : purpose::expectation)) continue;
    // The system or the budget does not allow more pinned memory: drop the hints.
    (prepares ? to_prepare_ : expected_).clear();
  }
}

void cuda_pinned_memory::make_room(locked& lock, std::size_t bytes) {
  while (pinned_ + bytes > most_.pinned) {
    auto oldest = pinned_ranges_.end();
    for (auto p = pinned_ranges_.begin(); p != pinned_ranges_.end(); ++p)
      if (!in_space(p->first) && p->second.value.pinned && idle(p->second.value) &&
          (oldest == pinned_ranges_.end() || p->second.value.age < oldest->second.value.age))
        oldest = p;
    if (oldest == pinned_ranges_.end()) return;
    unpin(lock, oldest);
  }
}

bool cuda_pinned_memory::idle(const pinned_range& p) const {
  return p.busy == 0 &&
         std::all_of(p.users.begin(), p.users.end(), [&](timepoint user) { return around_.reached(user); });
}

void cuda_pinned_memory::unpin(locked& lock, pinned_ranges::iterator p) {
  const std::size_t bytes = p->second.end - p->first;
  p->second.value.pinned = false;
  if (!in_space(p->first)) pinned_ -= bytes;
  count_as_used(p->second.value, bytes);
  lock.unlock();
  // cuMemHostUnregister fails if the device in whose context the pinned range was pinned is lost. The pages then stay
  // pinned until the process ends.
  const CUresult result = cu_.cuMemHostUnregister(host_pointer(p->first));
  if (result != CUDA_SUCCESS) log(log_level::debug, "unpinning host memory: {}", cu_.words_for(result));
  lock.lock();
  pinned_ranges_.erase(p);
  changed_.notify_all();
}

}  // namespace hpe::device::cuda
