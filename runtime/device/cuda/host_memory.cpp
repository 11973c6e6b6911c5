// Invariants: pieces are disjoint and each lies in one range. A piece is unpinned only when no copy is being queued on
// it and all its users are reached. Copies never cross the end of a piece, which the driver refuses.
#include "runtime/device/cuda/host_memory.h"

#include <algorithm>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::cuda {

namespace {

// Pinning costs 180 us for each piece and then 25 us for each MiB (H200, 2 MiB and 32 MiB pieces of touched memory), so
// a walk pins larger and larger pieces, and a single copy little.
constexpr std::size_t smallest_piece = granule_size;
constexpr std::size_t largest_piece = 16 * granule_size;

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): it was a pointer before
}

template <class Map>
auto containing(Map& map, std::uintptr_t address) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return map.end();
  --found;
  return address < found->second.end ? found : map.end();
}

}  // namespace

host_memory::host_memory(const driver& cu, const uvas_layout& layout, std::size_t budget, order points)
    : cu_(cu), layout_(layout), budget_(budget), points_(std::move(points)) {}

host_memory::~host_memory() {
  for (const auto& [begin, p] : pieces_) cu_.cuMemHostUnregister(pointer(begin));
}

bool host_memory::in_space(std::uintptr_t address) const noexcept { return layout_.contains(pointer(address)); }

void host_memory::insert(std::uintptr_t address, std::size_t bytes, int fd, std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto after = ranges_.lower_bound(address);
  HPE_REQUIRE(bytes != 0 && containing(ranges_, address) == ranges_.end() &&
                  (after == ranges_.end() || after->first >= address + bytes),
              HPE_ERROR_INVALID_ARGUMENT, "a part of the {} bytes at {:#x} is registered already", bytes, address);
  const bool for_kernels = in_space(address);
  if (for_kernels) {
    // The pages have to be usable while they are pinned; what is mapped over them later changes nothing.
    os::map_file(pointer(address), bytes, os::access::read_write, fd, static_cast<std::uint64_t>(offset));
    const CUresult result =
        cu_.cuMemHostRegister(pointer(address), bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result != CUDA_SUCCESS) {
      os::unmap_to_reserved(pointer(address), bytes);
      HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{} bytes of host memory cannot be pinned for the devices: {}", bytes,
                cu_.words_for(result));
    }
    pieces_.emplace(address, piece{address + bytes, 0, {}, 0});
  }
  ranges_.emplace(address, range{address + bytes, for_kernels});
}

void host_memory::erase(std::uintptr_t address, std::size_t bytes) {
  release(address, bytes);
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  HPE_REQUIRE(found != ranges_.end() && found->second.end == address + bytes, HPE_ERROR_INVALID_ARGUMENT,
              "the {} bytes at {:#x} were not registered", bytes, address);
  if (found->second.in_space) os::unmap_to_reserved(pointer(address), bytes);
  ranges_.erase(found);
}

void host_memory::release(std::uintptr_t address, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto p = containing(pieces_, address);
    if (p == pieces_.end()) p = pieces_.lower_bound(address);
    if (p == pieces_.end() || p->first >= address + bytes) return;
    if (idle(p->second)) {
      unpin(p);
      continue;
    }
    // Others may use its neighbours: their copies are waited for without the mutex, and then it is looked for again.
    const std::vector<timepoint> users = p->second.users;
    lock.unlock();
    for (const timepoint user : users) points_.wait(user);
    std::this_thread::yield();
    lock.lock();
  }
}

std::optional<std::uintptr_t> host_memory::find(std::uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = containing(ranges_, address);
  if (found == ranges_.end()) return std::nullopt;
  return found->second.end;
}

host_memory::use host_memory::begin(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto p = containing(pieces_, address);
  if (p == pieces_.end()) {
    const auto in = containing(ranges_, address);
    HPE_INVARIANT(in != ranges_.end());
    p = pin(address, bytes, in->second);
  }
  if (p == pieces_.end()) {
    const auto next = pieces_.upper_bound(address);
    return {0, next == pieces_.end() ? address + bytes : std::min(next->first, address + bytes)};
  }
  ++p->second.busy;
  p->second.age = ++clock_;
  return {p->first, std::min(p->second.end, address + bytes)};
}

void host_memory::done(std::span<const use> uses, timepoint by) {
  const std::lock_guard lock(mutex_);
  for (const use& u : uses) {
    if (u.piece == 0) continue;
    piece& p = pieces_.at(u.piece);
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

host_memory::pieces::iterator host_memory::pin(std::uintptr_t address, std::size_t bytes, const range& in) {
  std::uintptr_t begin = address / smallest_piece * smallest_piece;
  std::uintptr_t end = round_up(address + std::min(bytes, largest_piece), smallest_piece);
  const auto next = pieces_.upper_bound(address);
  if (next != pieces_.begin()) {
    const auto& [previous_begin, previous] = *std::prev(next);
    begin = std::max(begin, previous.end);
    if (previous.end == begin)
      end = std::max(end, begin + std::min(2 * (previous.end - previous_begin), largest_piece));
  }
  const auto range_begin = std::prev(ranges_.upper_bound(address))->first;
  begin = std::max(begin, range_begin);
  end = std::min(end, in.end);
  if (next != pieces_.end()) end = std::min(end, next->first);

  if (!make_room(end - begin)) return pieces_.end();
  const CUresult result = cu_.cuMemHostRegister(pointer(begin), end - begin, CU_MEMHOSTREGISTER_PORTABLE);
  if (result != CUDA_SUCCESS) {
    log(log_level::debug, "{} bytes of host memory cannot be pinned: {}", end - begin, cu_.words_for(result));
    return pieces_.end();
  }
  pinned_ += end - begin;
  return pieces_.emplace(begin, piece{end, 0, {}, 0}).first;
}

bool host_memory::make_room(std::size_t bytes) {
  while (pinned_ + bytes > budget_) {
    auto oldest = pieces_.end();
    for (auto p = pieces_.begin(); p != pieces_.end(); ++p)
      if (!in_space(p->first) && idle(p->second) && (oldest == pieces_.end() || p->second.age < oldest->second.age))
        oldest = p;
    if (oldest == pieces_.end()) return false;
    unpin(oldest);
  }
  return true;
}

bool host_memory::idle(const piece& p) const {
  return p.busy == 0 &&
         std::all_of(p.users.begin(), p.users.end(), [&](timepoint user) { return points_.reached(user); });
}

void host_memory::unpin(pieces::iterator p) {
  // After the loss of the device in whose context it was pinned this fails; the pages go with the process then.
  const CUresult result = cu_.cuMemHostUnregister(pointer(p->first));
  if (result != CUDA_SUCCESS) log(log_level::debug, "unpinning host memory: {}", cu_.words_for(result));
  if (!in_space(p->first)) pinned_ -= p->second.end - p->first;
  pieces_.erase(p);
}

}  // namespace hpe::device::cuda
