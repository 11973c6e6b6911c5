#include "interpose/gpu/calls/known_memory.h"

#include "runtime/base/interval_map.h"

namespace hpe::cuda_hooks {

std::optional<known_memory::cached_allocation> known_memory::find(CUdeviceptr address) const {
  const auto found = find_containing(known_, address, [](const cached_allocation& c) { return c.what.bytes; });
  return found != known_.end() ? std::optional(found->second) : std::nullopt;
}

// If another thread calls forget() while this function queries the driver, the allocation may already be freed, so this
// function does not add it to the cache. If host memory is too short, this function does not add the allocation either,
// and the next call queries the driver again.
std::optional<known_memory::cached_allocation> known_memory::find_or_ask(CUdeviceptr address) {
  std::uint64_t before = 0;
  {
    const lock_guard lock(mutex_);
    if (auto found = find(address)) return found;
    before = forgotten_;
  }
  const auto found = program_.device_memory_at(address);
  if (!found) return std::nullopt;
  cached_allocation made{.what = {found->base, found->bytes, found->context, is_allocated(found->base)}};
  const lock_guard lock(mutex_);
  if (before != forgotten_) return made;
  made.made = ++made_;
  try {
    known_.insert_or_assign(found->base, made);
  } catch (const std::bad_alloc&) {
    return made;
  }
  marks_.set(found->base, found->base + found->bytes, true);
  any_.store(true, std::memory_order_relaxed);
  return made;
}

bool known_memory::is_allocated(CUdeviceptr base) const noexcept {
  unsigned by_itself = 0;
  CUmemoryPool pool = nullptr;
  return (cu_.cuPointerGetAttribute(&by_itself, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, base) ==
              CUDA_SUCCESS &&
          by_itself != 0) ||
         (cu_.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, base) == CUDA_SUCCESS &&
          pool != nullptr);
}

std::optional<known_allocation> known_memory::at(CUdeviceptr address) {
  const auto found = find_or_ask(address);
  return found ? std::optional(found->what) : std::nullopt;
}

unsigned long long known_memory::number_of(const known_allocation& a) const noexcept {
  unsigned long long number = 0;
  const bool told = cu_.cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_BUFFER_ID, a.base) == CUDA_SUCCESS;
  return told ? number : 0;
}

CUuuid known_memory::device_of(const known_allocation& a) const noexcept {
  CUuuid result{};
  int ordinal = 0;
  if (cu_.cuDeviceGetUuid != nullptr &&
      cu_.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a.base) == CUDA_SUCCESS)
    cu_.cuDeviceGetUuid(&result, ordinal);
  return result;
}

void known_memory::share(cached_allocation& e) const {
  const device::cuda::entered here(cu_, e.what.context);
  e.asked = true;
  e.number = number_of(e.what);
  e.device = device_of(e.what);
  e.has_handle = e.number != 0 && cu_.cuIpcGetMemHandle != nullptr && cu_.cuIpcOpenMemHandle != nullptr &&
                 cu_.cuIpcGetMemHandle(&e.handle, e.what.base) == CUDA_SUCCESS;
}

// While share() queries the driver, another thread may free the allocation and add another allocation at the same
// address to the cache. This function must not overwrite the entry of that allocation.
std::optional<known_memory::shared_allocation> known_memory::shared_at(CUdeviceptr address) {
  auto found = find_or_ask(address);
  if (!found) return std::nullopt;
  if (!found->asked) {
    share(*found);
    const lock_guard lock(mutex_);
    const auto kept = known_.find(found->what.base);
    if (kept != known_.end() && kept->second.made == found->made) kept->second = *found;
  }
  if (!found->has_handle) return std::nullopt;
  return shared_allocation{found->what, found->number, found->handle, found->device};
}

void known_memory::forget(CUdeviceptr begin, CUdeviceptr end) noexcept {
  const lock_guard lock(mutex_);
  ++forgotten_;
  auto it = known_.upper_bound(begin);
  if (it != known_.begin() && std::prev(it)->first + std::prev(it)->second.what.bytes > begin) --it;
  while (it != known_.end() && it->first < end) {
    const known_allocation gone = it->second.what;
    it = known_.erase(it);
    // This call also clears the marks of granules that a neighbouring allocation shares; the next lines set them again.
    marks_.set(gone.base, gone.base + gone.bytes, false);
    if (it != known_.end()) marks_.set(it->first, it->first + it->second.what.bytes, true);
    if (it != known_.begin()) {
      const known_allocation& before = std::prev(it)->second.what;
      marks_.set(before.base, before.base + before.bytes, true);
    }
  }
  any_.store(!known_.empty(), std::memory_order_relaxed);
}

}  // namespace hpe::cuda_hooks
