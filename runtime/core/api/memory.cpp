// The C interface: memory.

#include "hpe/announce.h"
#include "runtime/base/granule.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"
#include "runtime/trace/profile.h"

using hpe::coherence::block_state;
using hpe::core::guarded;
using hpe::core::runtime;

namespace {

// Allocates memory and stores its address in *pointer. If the allocation fails, *pointer does not change.
template <class Allocate>
hpeStatus allocate_into(void** pointer, Allocate allocate, const char* function = __builtin_FUNCTION()) {
  const auto body = [&] {
    HPE_REQUIRE(pointer != nullptr, HPE_ERROR_INVALID_ARGUMENT, "the pointer for the address of an allocation is null");
    void* const made = allocate(runtime::instance());
    hpe::trace::allocated(made);
    if (auto* const checks = runtime::instance().checks(); checks != nullptr) checks->allocated(made, function);
    *pointer = made;
  };
  return guarded(body, function);
}

void free_allocation(void* pointer) {
  runtime& it = runtime::instance();
  it.spread().copies_of_arrays().forget(pointer);
  it.memory().free(pointer);
}

}  // namespace

hpeStatus hpeMalloc(void** pointer, size_t size) { return hpeMallocOn(pointer, size, HPE_CURRENT_DEVICE); }

hpeStatus hpeMallocOn(void** pointer, size_t size, int device) {
  return allocate_into(
      pointer, [&](runtime& it) { return it.memory().allocate(size, hpe::core::device_or_current(it, device)); });
}

hpeStatus hpeMallocHost(void** pointer, size_t size) {
  return allocate_into(pointer, [&](runtime& it) { return it.memory().allocate_host(size, false); });
}

hpeStatus hpeMallocOpen(void** pointer, size_t size) {
  return allocate_into(pointer, [&](runtime& it) { return it.memory().allocate_host(size, true); });
}

hpeStatus hpeMallocStriped(void** pointer, size_t size, const hpeDistribution* distribution) {
  return allocate_into(pointer, [&](runtime& it) { return it.memory().allocate_striped(size, distribution); });
}

hpeStatus hpeGetGranularity(size_t* bytes) {
  return guarded([&] {
    HPE_REQUIRE(bytes != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetGranularity: the pointer for the answer is null");
    *bytes = hpe::granule_size;
  });
}

hpeStatus hpeFree(void* pointer) {
  if (pointer == nullptr) return HPE_SUCCESS;
  return guarded([&] {
    runtime::instance().announced_work().wait_before_free(pointer);
    free_allocation(pointer);
  });
}

hpeStatus hpeFreeFinished(void* pointer) {
  if (pointer == nullptr) return HPE_SUCCESS;
  return guarded([&] { free_allocation(pointer); });
}

hpeStatus hpeMemcpy(void* destination, const void* source, size_t size) {
  return guarded([&] { runtime::instance().copies().copy_for_program(destination, source, size); });
}

hpeStatus hpeMemset(void* destination, int value, size_t size) {
  return guarded(
      [&] { runtime::instance().copies().fill_for_program(destination, static_cast<std::uint8_t>(value), size); });
}

hpeStatus hpePrefetch(const void* pointer, size_t size, int where) {
  return guarded([&] { runtime::instance().copies().prefetch(pointer, size, where); });
}

hpeStatus hpeAdvise(const void* pointer, hpeAdvice advice) {
  return guarded([&] {
    HPE_REQUIRE(advice >= HPE_ADVISE_DEFAULT && advice <= HPE_ADVISE_READ_MOSTLY, HPE_ERROR_INVALID_ARGUMENT,
                "{} is none of the values 0 to 4 of hpeAdvice", static_cast<int>(advice));
    const auto found = runtime::instance().memory().require(pointer);
    const hpe::lock_guard lock(found.region->mutex);
    // Small allocations share blocks, and advice about one allocation must not apply to its neighbours.
    if (found.region->layout.small == nullptr) found.region->advise(advice);
  });
}

hpeStatus hpeMigrate(void* pointer, int device) {
  return guarded([&] {
    auto& it = runtime::instance();
    const unsigned target = hpe::core::device_or_current(it, device);
    it.announced_work().wait_for_region(pointer);
    it.memory().migrate(pointer, target);
  });
}

hpeStatus hpeGetPointerInfo(const void* pointer, hpePointerInfo* info) {
  return guarded([&] {
    HPE_REQUIRE(info != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetPointerInfo: the pointer for the answer is null");
    hpePointerInfo result{};
    result.device = HPE_HOST;
    const auto found = runtime::instance().memory().find(pointer);
    if (found.region != nullptr) {
      const auto& r = *found.region;
      const hpe::lock_guard lock(r.mutex);
      HPE_REQUIRE(r.alive && r.contains(pointer), HPE_ERROR_NOT_A_REGION,
                  "the allocation at {} was freed by another thread just now", static_cast<void*>(found.base));
      const std::uint64_t offset = r.offset_of(pointer);
      const block_state state = r.state(r.block_of(offset));
      switch (r.layout.kind) {
        case hpe::coherence::region_kind::device: result.kind = HPE_MEMORY_DEVICE; break;
        case hpe::coherence::region_kind::striped: result.kind = HPE_MEMORY_STRIPED; break;
        case hpe::coherence::region_kind::host: result.kind = HPE_MEMORY_HOST; break;
      }
      result.base = found.base;
      result.size = found.bytes;
      if (!r.single_copy()) result.device = r.home_of(offset);
      result.on_host = r.single_copy() || state == block_state::host || state == block_state::shared ? 1 : 0;
      result.on_device =
          state == block_state::device || state == block_state::shared || state == block_state::fetching ? 1 : 0;
      result.block = r.layout.block_size;
    }
    hpe::core::give_answer(info, result, "hpeGetPointerInfo");
  });
}
