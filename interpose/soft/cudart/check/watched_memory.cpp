// A slot is in use while its range is not empty. The signal handler reads the slots without a lock: a slot's range is
// set last and cleared first. The pages of cudaMallocHost belong only to the program, because hpe copies through
// another mapping, so only threads of the program can touch them.

#include "interpose/soft/cudart/check/watched_memory.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <tuple>
#include <utility>

#include "hpe/check.h"
#include "interpose/soft/cudart/device/context.h"

namespace hpe::cudart {

namespace {

constexpr std::uintptr_t page_bytes = 4096;

struct slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // the range; end 0: the slot is free
  std::atomic<bool> forbids_reads{false};
  std::atomic<bool> is_of_message{false};
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
int threads_in_mpi = 0;  // used with the mutex only
std::atomic<int> message_slots{0};

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

// Returns the protection that a slot needs. Requires the mutex.
int protection_of(const slot& s) {
  if (s.is_of_message.load() && threads_in_mpi != 0) return PROT_READ | PROT_WRITE;
  return s.forbids_reads.load() ? PROT_NONE : PROT_READ;
}

std::uintptr_t end_of_pages(std::uintptr_t end) { return page_of(end - 1) + page_bytes; }

// Sets the protection of the range's pages to what the slots need. Requires the mutex. Pages that a touch has opened
// are protected again.
void set_pages(std::uintptr_t begin, std::uintptr_t end) {
  const slot* only = nullptr;
  int overlaps = 0;
  for (const slot& each : slots) {
    const std::uintptr_t other = each.end.load();
    if (other == 0 || page_of(each.begin.load()) >= end_of_pages(end) || end_of_pages(other) <= page_of(begin))
      continue;
    only = &each;
    ++overlaps;
  }
  const auto protect = [](std::uintptr_t from, std::uintptr_t to, int allowed) {
    ::mprotect(pointer(page_of(from)), end_of_pages(to) - page_of(from), allowed);
  };
  if (overlaps == 0) return protect(begin, end, PROT_READ | PROT_WRITE);
  if (overlaps == 1 && only->begin.load() <= begin && only->end.load() >= end)
    return protect(begin, end, protection_of(*only));
  for (std::uintptr_t at = page_of(begin); at < end; at += page_bytes) {
    int allowed = PROT_READ | PROT_WRITE;
    for (const slot& each : slots) {
      const std::uintptr_t other = each.end.load();
      if (other == 0 || at + page_bytes <= each.begin.load() || at >= other) continue;
      allowed = std::min(allowed, protection_of(each));
    }
    protect(at, at + 1, allowed);
  }
}

void add_watch(std::uintptr_t begin, std::uintptr_t end, check::use how, const check::operation_run& what,
               bool is_of_message) {
  trace::call_stack::prepare();
  const std::lock_guard lock(slots_mutex);
  const auto free = std::find_if(slots.begin(), slots.end(), [](const slot& each) { return each.end.load() == 0; });
  if (free == slots.end()) return;
  free->what = what;
  free->how = how;
  free->touched.store(0);
  free->forbids_reads.store(how != check::use::read);
  free->is_of_message.store(is_of_message);
  free->begin.store(begin);
  free->end.store(end, std::memory_order_release);
  if (is_of_message) ++message_slots;
  set_pages(begin, end);
}

// Requires the mutex.
void end_watch(slot& ended) {
  const std::uintptr_t end = ended.end.load(), begin = ended.begin.load();
  ended.end.store(0);
  if (ended.is_of_message.load()) --message_slots;
  set_pages(begin, end);
}

// Sets the pages of the calls of MPI. Requires the mutex.
void set_message_pages() {
  for (const slot& each : slots)
    if (const std::uintptr_t end = each.end.load(); end != 0 && each.is_of_message.load())
      set_pages(each.begin.load(), end);
}

bool is_in(const char* file) {
  static constexpr std::array<const char*, 3> libraries{"/libmpi", "/libopen-", "/libmpich"};
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const char* name) { return std::strstr(file, name) != nullptr; });
}

// Whether MPI's own code makes a touch, in a function for which hpe has no wrapper.
bool is_by_mpi(const trace::call_stack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.begin() + stack.count, [](void* frame) {
    Dl_info about{};
    return ::dladdr(frame, &about) != 0 && about.dli_fname != nullptr && is_in(about.dli_fname);
  });
}

}  // namespace

void start_watching() { check(::hpeWatchFaults(on_fault)); }

void watch(const void* first, std::size_t bytes, check::use how, const check::operation_run& what) {
  const auto found = process().memory().find(first);
  if (bytes == 0 || !found || found->kind != allocation_kind::host || !found->holds(first, bytes)) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(first);
  add_watch(begin, begin + bytes, how, what, false);
}

void watch_message(const void* first, std::size_t bytes, check::use how, const check::operation_run& what) {
  const auto* begin = static_cast<const std::byte*>(first);
  const std::byte* end = begin + bytes;
  const auto found = process().memory().find_also_of_hpe(first);
  if (found && found->kind != allocation_kind::host) return;
  if (!found) std::tie(begin, end) = pages_within(begin, end);
  if (begin < end)
    add_watch(reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(end), how, what, true);
}

std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end) {
  const auto number = reinterpret_cast<std::uintptr_t>(begin);
  const std::byte* const first = begin + (page_of(number + page_bytes - 1) - number);
  const std::byte* const last = end - (reinterpret_cast<std::uintptr_t>(end) % page_bytes);
  return first < last ? std::pair(first, last) : std::pair(end, end);
}

void open_message_pages() noexcept {
  const std::lock_guard lock(slots_mutex);
  if (++threads_in_mpi == 1 && message_slots != 0) set_message_pages();
}

void close_message_pages() noexcept {
  const std::lock_guard lock(slots_mutex);
  if (--threads_in_mpi == 0 && message_slots != 0) set_message_pages();
}

void forget_watches(const void* first, std::size_t bytes, check::use how) {
  const auto begin = reinterpret_cast<std::uintptr_t>(first), end = begin + bytes;
  const std::lock_guard lock(slots_mutex);
  for (slot& each : slots) {
    if (each.end.load() <= begin || each.begin.load() >= end || each.is_of_message.load()) continue;
    if (how == check::use::read && !each.forbids_reads.load()) continue;
    end_watch(each);
    each.what = {};
  }
}

void end_watches(bool also_unfinished) {
  const std::lock_guard lock(slots_mutex);
  for (slot& each : slots) {
    if (each.end.load() == 0 || (!also_unfinished && !checker()->has_waited(each.what.work->when))) continue;
    end_watch(each);
    if (each.touched.load(std::memory_order_acquire) == 2 && !is_by_mpi(each.stack))
      checker()->add_touch(each.what, each.how, each.address, each.writes, {"", each.stack});
    each.what = {};
  }
}

}  // namespace hpe::cudart
