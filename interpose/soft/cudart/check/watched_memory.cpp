// hpe accesses pinned memory and managed memory by another mapping, and registered memory, which it moves to its own
// pages, by their address for kernels.

#include "interpose/soft/cudart/check/watched_memory.h"

#include "interpose/soft/cudart/device/context.h"
#include "runtime/check/host_watch.h"

namespace hpe::cudart {

namespace {

using check::host_watch;

std::uintptr_t position(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// The memory that the program uses at its own addresses, if pages of this memory can be watched.
std::optional<cudart_allocation> host_memory_at(const void* address) {
  const auto found = process().memory().find(address);
  if (!found || !(found->is_managed() || !found->is_on_device())) return std::nullopt;
  const bool is_registered = found->kind == allocation_kind::registered;
  if (is_registered && (found->device_base == found->base || !check::has_own_pages(found->base, found->size)))
    return std::nullopt;
  return found;
}

}  // namespace

void start_watching() { check(host_watch::start(::hpeWatchTouches)); }

void watch(const task_memory_uses& uses, const check::past_ptr& work) {
  trace::call_stack::prepare();
  for (const hpeAccess& each : uses.ranges) {
    std::uintptr_t begin = position(each.address);
    std::size_t bytes = each.size;
    if (const auto behind = registered_behind(begin)) {
      begin = position(behind->base);
      bytes = behind->size;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
    const auto found = host_memory_at(reinterpret_cast<const void*>(begin));
    if (!found || bytes == 0) continue;
    host_watch::of_process()->watch({begin, begin + bytes, each.mode != HPE_IN, found->is_managed()}, work);
  }
}

bool has_pages_of_host(const void* address) {
  const auto found = host_memory_at(address);
  return found && !found->is_managed();
}

void forget_pages(const cudart_allocation& gone) {
  const std::uintptr_t begin = position(gone.base);
  host_watch::of_process()->forget(begin, begin + gone.size);
}

std::optional<cudart_allocation> registered_behind(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  const auto found = process().memory().find(reinterpret_cast<const void*>(address));
  return found && found->registered != nullptr ? process().memory().find(found->registered) : std::nullopt;
}

}  // namespace hpe::cudart
