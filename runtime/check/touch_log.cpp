#include "runtime/check/touch_log.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hpe::check {

void touch_log::prepare() {
  const auto find = [](dl_phdr_info* object, std::size_t, void* to) {
    if (object->dlpi_name == nullptr || std::strstr(object->dlpi_name, "/libc.so") == nullptr) return 0;
    for (int n = 0; n < object->dlpi_phnum; ++n) {
      const auto& part = object->dlpi_phdr[n];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      *static_cast<code*>(to) = {object->dlpi_addr + part.p_vaddr, object->dlpi_addr + part.p_vaddr + part.p_memsz};
    }
    return 1;
  };
  ::dl_iterate_phdr(find, &libc_);
  void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) return;
  // The symbols lead to the variants for this processor.
  constexpr std::uintptr_t before = 64, behind = 4096;
  constexpr std::array<const char*, 2> names{"memcpy", "memmove"};
  for (std::size_t n = 0; n < names.size(); ++n) {
    const auto entry = reinterpret_cast<std::uintptr_t>(::dlsym(libc, names[n]));
    copies_[n] = {entry - before, entry + behind};
  }
}

touch_log::code touch_log::code::around(const void* address) {
  struct search {
    std::uintptr_t address;
    code found;
  } wanted{reinterpret_cast<std::uintptr_t>(address), {}};
  const auto look = [](dl_phdr_info* object, std::size_t, void* to) {
    auto& its = *static_cast<search*>(to);
    for (int n = 0; n < object->dlpi_phnum; ++n) {
      const auto& part = object->dlpi_phdr[n];
      const code here{object->dlpi_addr + part.p_vaddr, object->dlpi_addr + part.p_vaddr + part.p_memsz};
      if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 && here.contains(its.address)) its.found = here;
    }
    return its.found.end != 0 ? 1 : 0;
  };
  ::dl_iterate_phdr(look, &wanted);
  return wanted.found;
}

void touch_log::leave_out(const void* function_of_library) {
  hpe_ = code::around(reinterpret_cast<const void*>(&code::around));
  left_out_ = code::around(function_of_library);
}

bool touch_log::is_left_out(const host_touch& touch, const void* instruction) const noexcept {
  if (left_out_.end == 0 || instruction == nullptr) return false;
  if (left_out_.contains(instruction)) return true;
  const auto calls = calls_of(touch, instruction);
  const auto caller =
      std::ranges::find_if(calls, [&](const void* at) { return !libc_.contains(at) && !hpe_.contains(at); });
  return caller != calls.end() && left_out_.contains(*caller);
}

std::span<void* const> touch_log::calls_of(const host_touch& touch, const void* instruction) const noexcept {
  const std::span all(touch.stack.frames.data(), static_cast<std::size_t>(std::max(touch.stack.count, 0)));
  auto first = std::find(all.begin(), all.end(), instruction);
  while (first != all.end() && libc_.contains(*first)) ++first;
  return {first, all.end()};
}

bool touch_log::join(const host_touch& touch, const void* instruction) noexcept {
  constexpr std::uint64_t latest = 4;  // a thread's last touch is among the last ones
  const auto calls = calls_of(touch, instruction);
  if (calls.empty()) return false;
  const std::uint64_t next = next_.load();
  for (std::uint64_t back = 1; back <= std::min(latest, next); ++back) {
    entry& each = entries_[(next - back) % entries_.size()];
    int state = entry::complete;
    if (!each.state.compare_exchange_strong(state, entry::in_use)) continue;
    const bool follows = each.what.thread == touch.thread && each.what.writes == touch.writes && !each.what.is_vague &&
                         touch.begin <= each.what.end && touch.end >= each.what.begin &&
                         std::ranges::equal(calls, calls_of(each.what, each.instruction));
    if (follows) {
      each.what.begin = std::min(each.what.begin, touch.begin);
      each.what.end = std::max(each.what.end, touch.end);
    }
    each.state.store(entry::complete, std::memory_order_release);
    if (follows) return true;
  }
  return false;
}

void touch_log::add(std::uintptr_t begin, std::uintptr_t end, bool writes, const void* instruction) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(instruction);
  constexpr std::uintptr_t exact = 8;  // functions of libc that read words read no more than they need
  const bool copies = copies_[0].contains(at) || copies_[1].contains(at);
  const bool is_vague = !writes && end - begin > exact && libc_.contains(at) && !copies;
  const host_touch touch{begin, end, writes, is_vague, ::gettid(), trace::call_stack::here()};
  if (is_left_out(touch, instruction) || (!is_vague && instruction != nullptr && join(touch, instruction))) return;
  for (std::size_t tries = 0; tries < entries_.size(); ++tries) {
    entry& each = entries_[next_.load() % entries_.size()];
    int state = entry::free;
    if (!each.state.compare_exchange_strong(state, entry::in_use)) {
      if (state == entry::complete) return;  // the log is full: the touch is lost
      continue;                              // another thread takes this entry
    }
    next_.fetch_add(1);
    each.instruction = instruction;
    each.what = touch;
    each.state.store(entry::complete, std::memory_order_release);
    return;
  }
}

std::vector<host_touch> touch_log::take() {
  std::vector<host_touch> result;
  const std::uint64_t next = next_.load();
  for (std::uint64_t n = next; n < next + entries_.size(); ++n) {
    entry& each = entries_[n % entries_.size()];
    int state = entry::complete;
    if (!each.state.compare_exchange_strong(state, entry::in_use)) continue;
    result.push_back(each.what);
    each.state.store(entry::free, std::memory_order_release);
  }
  return result;
}

}  // namespace hpe::check
