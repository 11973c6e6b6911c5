// A slot is in use while its range is not empty. The signal handler reads the slots without a lock: a slot's range is
// set last and cleared first. The pages of cudaMallocHost belong only to the program, because hpe copies through
// another mapping, so only threads of the program can touch them.

#include "interpose/soft/cudart/check/watched_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "hpe/check.h"
#include "interpose/soft/cudart/device/context.h"

namespace hpe::cudart {

namespace {

constexpr std::uintptr_t page_bytes = 4096;

struct slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // the range; end 0: the slot is free
  std::atomic<bool> forbids_reads{false};
  // The first touch. 0: none, 1: a thread writes the members below, 2: they are complete.
  std::atomic<int> touched{0};
  std::uintptr_t address = 0;
  bool writes = false;
  trace::call_stack stack;
  // Used with the mutex only.
  check::operation_run what;
  check::use how = check::use::read;
};

// The largest number of ranges that are watched at once; further ranges are not watched.
std::array<slot, 256> slots;
std::mutex slots_mutex;

std::uintptr_t page_of(std::uintptr_t address) { return address / page_bytes * page_bytes; }

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses are numbers
}

/// The signal handler. Opens the page if it is watched; other pages of the same range remain protected.
bool on_fault(void* where, bool is_write) {
  const auto address = reinterpret_cast<std::uintptr_t>(where);
  bool is_watched = false;
  for (slot& each : slots) {
    const std::uintptr_t end = each.end.load(std::memory_order_acquire), begin = each.begin.load();
    if (end == 0 || address < page_of(begin) || address >= page_of(end - 1) + page_bytes) continue;
    is_watched = true;
    if (address < begin || address >= end || (!is_write && !each.forbids_reads.load())) continue;
    int none = 0;
    if (!each.touched.compare_exchange_strong(none, 1)) continue;
    each.address = address;
    each.writes = is_write;
    each.stack = trace::call_stack::here();
    each.touched.store(2, std::memory_order_release);
  }
  if (!is_watched) return false;
  const int before = errno;
  const bool opened = ::mprotect(pointer(page_of(address)), page_bytes, PROT_READ | PROT_WRITE) == 0;
  errno = before;
  return opened;
}

// Sets the protection of the range's pages to what the remaining slots need. Requires the mutex. Pages that a touch has
// opened are protected again only by a new watch.
void open_pages(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t at = page_of(begin); at < end; at += page_bytes) {
    int allowed = PROT_READ | PROT_WRITE;
    for (const slot& each : slots) {
      const std::uintptr_t other = each.end.load();
      if (other == 0 || at + page_bytes <= each.begin.load() || at >= other) continue;
      allowed = std::min(allowed, each.forbids_reads.load() ? PROT_NONE : PROT_READ);
    }
    ::mprotect(pointer(at), page_bytes, allowed);
  }
}

}  // namespace

void start_watching() { check(::hpeWatchFaults(on_fault)); }

void watch(const void* first, std::size_t bytes, check::use how, const check::operation_run& what) {
  const auto found = process().memory().find(first);
  if (bytes == 0 || !found || found->kind != allocation_kind::host || !found->holds(first, bytes)) return;
  trace::call_stack::prepare();
  const auto begin = reinterpret_cast<std::uintptr_t>(first), end = begin + bytes;
  const std::lock_guard lock(slots_mutex);
  const auto free = std::find_if(slots.begin(), slots.end(), [](const slot& each) { return each.end.load() == 0; });
  if (free == slots.end()) return;
  free->what = what;
  free->how = how;
  free->touched.store(0);
  free->forbids_reads.store(how != check::use::read);
  free->begin.store(begin);
  free->end.store(end, std::memory_order_release);
  const int allowed = how == check::use::read ? PROT_READ : PROT_NONE;
  bool overlaps = false;
  for (const slot& each : slots)
    if (&each != &*free && each.end.load() != 0 && each.begin.load() < page_of(end - 1) + page_bytes &&
        each.end.load() > page_of(begin))
      overlaps = true;
  if (overlaps)
    open_pages(begin, end);
  else
    ::mprotect(pointer(page_of(begin)), page_of(end - 1) + page_bytes - page_of(begin), allowed);
}

void end_watches(bool also_unfinished) {
  const std::lock_guard lock(slots_mutex);
  for (slot& each : slots) {
    const std::uintptr_t end = each.end.load(), begin = each.begin.load();
    if (end == 0 || (!also_unfinished && !checker()->has_waited(each.what.work->when))) continue;
    each.end.store(0);
    open_pages(begin, end);
    if (each.touched.load(std::memory_order_acquire) == 2)
      checker()->add_touch(each.what, each.how, each.address, each.writes, {"", each.stack});
    each.what = {};
  }
}

}  // namespace hpe::cudart
