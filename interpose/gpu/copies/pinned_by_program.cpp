// No memory is allocated or freed while the mutex is held: the program's malloc may call memcpy.
#include "interpose/gpu/copies/pinned_by_program.h"

#include <iterator>
#include <new>

#include "runtime/os/signals.h"

namespace hpe::cuda_hooks {

namespace {

std::uintptr_t number_of_address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

pinned_by_program& pinned_by_program::of_process() {
  static auto* const all = new pinned_by_program;
  return *all;
}

void pinned_by_program::add(const void* begin, std::size_t bytes) noexcept {
  try {
    std::map<std::uintptr_t, std::uintptr_t> added{{number_of_address(begin), number_of_address(begin) + bytes}};
    std::map<std::uintptr_t, std::uintptr_t>::node_type old;
    const os::signals_blocked meanwhile;
    const lock_guard lock(mutex_);
    old = ranges_.extract(number_of_address(begin));
    ranges_.merge(added);
  } catch (const std::bad_alloc&) {  // large copies to this memory are libc's
  }
}

void pinned_by_program::remove(const void* begin) noexcept {
  std::map<std::uintptr_t, std::uintptr_t>::node_type old;
  const os::signals_blocked meanwhile;
  const lock_guard lock(mutex_);
  old = ranges_.extract(number_of_address(begin));
}

bool pinned_by_program::has(const void* begin, std::size_t bytes) const noexcept {
  const std::uintptr_t first = number_of_address(begin);
  const lock_guard lock(mutex_);
  const auto next = ranges_.upper_bound(first);
  return next != ranges_.begin() && first + bytes <= std::prev(next)->second;
}

}  // namespace hpe::cuda_hooks
