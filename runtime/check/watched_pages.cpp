// Whoever changes what a page's protection depends on does so before mprotect. Threads that hold the mutex do both in
// one critical section; close() repeats mprotect until nothing has changed meanwhile. So the last mprotect is always
// right. The operating system executes one mprotect after the other, and each thread sees what another one has stored
// before an earlier mprotect.

#include "runtime/check/watched_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace hpe::check {

namespace {

std::uintptr_t page_of(std::uintptr_t address) {
  return address / watched_pages::page_bytes * watched_pages::page_bytes;
}

}  // namespace

watched_pages::~watched_pages() {
  for (const std::atomic<leaf*>& each : table_) delete each.load();
}

watched_pages::leaf* watched_pages::find_leaf(std::uintptr_t number) const noexcept {
  for (std::size_t at = number * 0x9e3779b97f4a7c15ULL >> 48;; at = (at + 1) % most_leaves) {
    leaf* const each = table_[at].load(std::memory_order_acquire);
    if (each == nullptr || each->number == number) return each;
  }
}

watched_pages::page* watched_pages::find(std::uintptr_t address) const noexcept {
  const std::uintptr_t number = address / page_bytes;
  leaf* const its = find_leaf(number / pages_of_leaf);
  return its != nullptr ? &its->pages[number % pages_of_leaf] : nullptr;
}

bool watched_pages::make_leaves(std::uintptr_t begin, std::uintptr_t end) {
  constexpr std::uintptr_t bytes = pages_of_leaf * page_bytes;
  for (std::uintptr_t number = begin / bytes; number * bytes < end; ++number) {
    if (find_leaf(number) != nullptr) continue;
    if (leaves_ == most_leaves / 2) return false;
    auto* const made = new leaf;
    made->number = number;
    std::size_t at = number * 0x9e3779b97f4a7c15ULL >> 48;
    while (table_[at].load() != nullptr) at = (at + 1) % most_leaves;
    table_[at].store(made, std::memory_order_release);
    ++leaves_;
  }
  return true;
}

bool watched_pages::protect(std::uintptr_t begin, std::uintptr_t end, level allowed) noexcept {
  constexpr std::array<int, 3> bits{PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
  if (begin == end) return true;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  return ::mprotect(reinterpret_cast<void*>(begin), end - begin, bits[allowed]) == 0;
}

/// Calls change(page) for each page, and then sets the protection of the pages for which it returns true: the
/// protection may have changed.
template <class Change>
bool watched_pages::apply(std::uintptr_t begin, std::uintptr_t end, const Change& change) {
  constexpr std::uintptr_t bytes = pages_of_leaf * page_bytes;
  bool good = true;
  std::uintptr_t from = page_of(begin), at = from;
  level same = all;
  while (at < end) {
    leaf* const its = find_leaf(at / bytes);
    for (const std::uintptr_t stop = std::min(end, (at / bytes + 1) * bytes); at < stop; at += page_bytes) {
      page* const each = its != nullptr ? &its->pages[at / page_bytes % pages_of_leaf] : nullptr;
      const bool changed = each != nullptr && change(*each);
      const level now = each != nullptr ? each->effective() : same;
      if (changed && now == same) continue;
      good = protect(from, at, same) && good;
      from = changed ? at : at + page_bytes;
      same = now;
    }
  }
  return protect(from, std::max(from, at), same) && good;
}

bool watched_pages::add(std::uintptr_t begin, std::uintptr_t end, bool is_written, bool has_protocol) {
  const lock_guard lock(mutex_);
  if (!make_leaves(begin, end)) return false;
  const bool good = apply(begin, end, [&](page& each) {
    if (!each.known.load(order_of_load)) {
      // The protocol opens a closed page when CPU code touches it.
      each.allowed.store(has_protocol ? none : all, order_of_store);
      each.known.store(true, order_of_store);
    }
    ++(is_written ? each.writers : each.readers);
    const level before = each.effective();
    const bool is_new = each.readers + each.writers == 1;
    each.touches.store(0, order_of_store);
    each.wanted.store(each.of_uses(), order_of_store);
    return is_new || each.effective() != before;
  });
  if (!good) end_use(begin, end, is_written);
  return good;
}

void watched_pages::add_again(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  apply(begin, end, [](page& each) {
    const level before = each.effective();
    each.touches.store(0, order_of_store);
    return each.effective() != before;
  });
}

void watched_pages::remove(std::uintptr_t begin, std::uintptr_t end, bool is_written) {
  const lock_guard lock(mutex_);
  end_use(begin, end, is_written);
}

/// Calls change(page) for each page, and lets the page follow its uses.
template <class Change>
void watched_pages::change_use(std::uintptr_t begin, std::uintptr_t end, const Change& change) {
  apply(begin, end, [&](page& each) {
    change(each);
    const level before = each.effective();
    each.wanted.store(each.of_uses(), order_of_store);
    return each.effective() != before;
  });
}

void watched_pages::end_use(std::uintptr_t begin, std::uintptr_t end, bool is_written) {
  change_use(begin, end, [&](page& each) { --(is_written ? each.writers : each.readers); });
}

void watched_pages::lend(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  if (make_leaves(begin, end)) change_use(begin, end, [](page& each) { ++each.lent; });
}

void watched_pages::take_back(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  change_use(begin, end, [](page& each) { each.lent -= each.lent != 0 ? 1 : 0; });
}

void watched_pages::forget(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  for (std::uintptr_t at = page_of(begin); at < end; at += page_bytes)
    // A page that other memory shares remains mapped.
    if (page* const each = find(at); each != nullptr && each->readers + each->writers == 0) each->known.store(false);
}

bool watched_pages::allow(std::uintptr_t begin, std::uintptr_t end, os::page_protection allowed, bool& failed) {
  bool any = false;
  for (std::uintptr_t at = begin; at < end && !any;
       at = (at / page_bytes / pages_of_leaf + 1) * pages_of_leaf * page_bytes)
    any = find(at) != nullptr;
  if (!any) return false;
  using os::page_protection;
  const level its = allowed == page_protection::none ? none : allowed == page_protection::read ? reads : all;
  const lock_guard lock(mutex_);
  std::uintptr_t from = begin;
  const auto plain = [&](std::uintptr_t until) { failed = !protect(from, until, its) || failed; };
  for (std::uintptr_t at = begin; at < end; at += page_bytes) {
    page* const each = find(at);
    if (each == nullptr || !each->known.load()) continue;
    each->allowed.store(its);
    if (each->effective() == its) continue;
    plain(at);
    failed = !protect(at, at + page_bytes, each->effective()) || failed;
    from = at + page_bytes;
  }
  plain(std::max(from, end));
  return true;
}

watched_pages::answer watched_pages::touched(std::uintptr_t address, bool writes) noexcept {
  page* const its = find(address);
  if (its == nullptr || !its->known.load()) return answer::not_watched;
  const level needed = writes ? all : reads, allowed = its->allowed.load(), open = its->effective();
  if (needed > allowed) return answer::not_watched;
  const std::uintptr_t begin = page_of(address);
  if (needed <= open) return protect(begin, begin + page_bytes, open) ? answer::opened : answer::not_watched;
  const bool many = steps_.fetch_add(1) >= most_steps;
  its->touches.store(many ? most_touches : its->touches.load() + 1);
  return protect(begin, begin + page_bytes, allowed) ? answer::touched : answer::not_watched;
}

void watched_pages::close(std::uintptr_t address) noexcept {
  const page* const its = find(address);
  if (its == nullptr) return;
  const std::uintptr_t begin = page_of(address);
  for (level now = all; now != its->effective();) {
    now = its->effective();
    protect(begin, begin + page_bytes, now);
  }
}

bool watched_pages::is_in_use(std::uintptr_t begin, std::uintptr_t end) const noexcept {
  for (std::uintptr_t at = page_of(begin); at < end; at += page_bytes)
    if (const page* const each = find(at); each != nullptr && each->wanted.load() != all) return true;
  return false;
}

bool watched_pages::is_tired(std::uintptr_t address) const noexcept {
  const page* const its = find(address);
  return its != nullptr && its->is_tired();
}

bool watched_pages::open_pages(std::uintptr_t begin, std::uintptr_t end) {
  bool any = false;
  apply(begin, end, [&](page& each) {
    if (each.readers + each.writers == 0 || each.is_tired()) return false;
    any = true;
    each.touches.store(most_touches);
    return true;
  });
  return any;
}

bool watched_pages::open(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  return open_pages(begin, end);
}

bool watched_pages::open_all() {
  const lock_guard lock(mutex_);
  bool any = false;
  for (const auto& slot : table_) {
    const leaf* const its = slot.load();
    if (its == nullptr) continue;
    const std::uintptr_t begin = its->number * pages_of_leaf * page_bytes;
    any |= open_pages(begin, begin + pages_of_leaf * page_bytes);
  }
  return any;
}

bool has_own_pages(const void* begin, std::size_t bytes) noexcept {
  constexpr std::uintptr_t page = watched_pages::page_bytes, header = 2 * sizeof(std::size_t);
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(begin) % page;
  if (offset == 0) return bytes % page == 0;
  if (offset != header) return false;
  // glibc's header: the size of the mapping, and the bit of a mapping.
  constexpr std::size_t is_mapped = 2, flags = 7;
  std::size_t size = 0;
  std::memcpy(&size, static_cast<const char*>(begin) - sizeof size, sizeof size);
  return (size & flags) == is_mapped && (size & ~flags) % page == 0 && (size & ~flags) - header >= bytes;
}

bool is_on_stack(const void* begin, std::size_t bytes) noexcept {
  constexpr std::uintptr_t below = 128 << 10, above = 4 << 10;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return first < here + above && here - below < first + bytes;
}

}  // namespace hpe::check
