#include "interpose/gpu/oversubscribed/driver_allocations.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "interpose/gpu/oversubscribed/driver_result.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/core/memory/allocator.h"

namespace hpe::cuda_hooks {

CUresult driver_allocations::allocate(const driver_allocation& what, unsigned device, CUcontext context,
                                      driver_call call) {
  table prepared{{0, {device, what.bytes, context}}};  // so that no host memory is needed after the driver's call
  try {
    memory_.withhold(device, what.bytes);
  } catch (const error& e) {
    // Allocators of libraries try large allocations first, and expect that they fail.
    static std::atomic<bool> told{false};
    log(told.exchange(true) ? log_level::info : log_level::warn, "an allocation by the driver fails: {}", e.what());
    return result_of(e);
  }
  std::uint64_t name = 0;
  const CUresult result = call(name);
  if (result == CUDA_SUCCESS)
    add(what.named_by, name, prepared.extract(prepared.begin()));
  else
    memory_.restore(device, what.bytes);
  return result;
}

void driver_allocations::add(driver_allocation::name_kind kind, std::uint64_t name, table::node_type&& made) noexcept {
  const lock_guard lock(mutex_);
  made.key() = name;
  auto added = (kind == driver_allocation::name_kind::address ? by_address_ : by_handle_).insert(std::move(made));
  // An older allocation of this name has ended in a way that hpe does not see.
  if (!added.inserted) restore(std::exchange(added.position->second, added.node.mapped()));
}

void driver_allocations::restore(const counted_allocation& ended) noexcept {
  memory_.restore(ended.device, ended.bytes);
}

void driver_allocations::drop(std::uint64_t handle) noexcept {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end() || --found->second.references > 0) return;
  restore(found->second);
  by_handle_.erase(found);
}

void driver_allocations::keep(std::uint64_t handle) {
  if (const auto found = by_handle_.find(handle); found != by_handle_.end()) ++found->second.references;
}

void driver_allocations::note(const driver_allocation_event& event) {
  const lock_guard lock(mutex_);
  using step = driver_allocation_event::step;
  switch (event.what) {
    case step::freed:
      if (const auto found = by_address_.find(event.address); found != by_address_.end()) {
        restore(found->second);
        by_address_.erase(found);
      }
      break;
    case step::retained: keep(event.handle); break;
    case step::released: drop(event.handle); break;
    case step::mapped:
      if (!by_handle_.contains(event.handle)) break;
      mapped_[event.address] = event.handle;
      keep(event.handle);
      break;
    case step::unmapped:
      for (auto at = mapped_.lower_bound(event.address); at != mapped_.end() && at->first - event.address < event.bytes;
           at = mapped_.erase(at))
        drop(at->second);
      break;
  }
}

void driver_allocations::end(CUcontext context, function_ref<void(CUdeviceptr)> free) {
  for (;;) {
    table::node_type its;
    {
      const lock_guard lock(mutex_);
      const auto found =
          std::ranges::find_if(by_address_, [&](const auto& each) { return each.second.context == context; });
      if (found == by_address_.end()) return;
      its = by_address_.extract(found);
    }
    free(its.key());
    restore(its.mapped());
  }
}

}  // namespace hpe::cuda_hooks
