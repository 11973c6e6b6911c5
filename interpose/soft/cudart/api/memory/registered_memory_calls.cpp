// cudaHostRegister and related functions. hpe can copy any memory, so cudaHostRegister does not lock pages. Soft
// devices are other processes, so their kernels cannot access the program's own pages. When the program requests the
// device address of registered memory, hpe replaces the memory's pages by host pages of hpe memory with the same bytes.
// After that, CPU code and kernels can use the memory. hpe replaces whole pages, which may contain other data before
// and after the registered memory; no thread may write this data during the call. If another user would continue to use
// the old pages (reason_to_keep), the call fails.

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "hpe/announce.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/own_pages.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "runtime/base/box.h"
#include "runtime/base/log.h"
#include "runtime/check/watched_pages.h"

using namespace hpe::cudart;

namespace {

constexpr std::uintptr_t page = 4096;

std::span<char> pages_of(const cudart_allocation& memory) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory.base) & ~(page - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.base) + memory.size + page - 1) & ~(page - 1);
  return {reinterpret_cast<char*>(first), end - first};
}

/// Returns the address of the first whole page in an allocation of hpe.
char* first_page(void* base) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(base) + page - 1) & ~(page - 1));
}

/// Replaces the program's pages by host pages of hpe memory. Returns the address for kernels.
void* move_to_hpe(cudart_allocation memory) {
  const std::span<char> own = pages_of(memory);
  if (const auto reason = reason_to_keep(own)) {
    throw failure(cudaErrorNotSupported,
                  "kernels on soft devices cannot use this registered memory, because its pages cannot be replaced: " +
                      *reason + "; use memory from cudaMallocHost, or copy the data to device memory");
  }
  void* made = nullptr;
  check(::hpeMallocOpen(&made, own.size() + page));
  char* const shared = first_page(made);
  std::memcpy(shared, own.data(), own.size());
  // For a shared mapping and an old size of 0, mremap creates a second mapping of the same pages.
  void* const placed = ::mremap(shared, 0, own.size(), MREMAP_MAYMOVE | MREMAP_FIXED, own.data());
  if (placed == MAP_FAILED) {
    ::hpeFreeFinished(made);
    throw failure(cudaErrorMemoryAllocation);
  }
  memory.device_base = shared + (static_cast<char*>(memory.base) - own.data());
  process().memory().add(memory);
  process().memory().add({.base = made,
                          .size = own.size() + page,
                          .kind = allocation_kind::host,
                          .device = memory.device,
                          .flags = memory.flags,
                          .registered = memory.base});
  return memory.device_base;
}

/// Lets hpe watch the memory (runtime/check/host_watch.h): hpe's own accesses must use other addresses than the
/// program's.
void watch_registered(void* pointer) {
  try {
    const cudart_allocation memory = *process().memory().find(pointer);
    if (!hpe::check::has_own_pages(memory.base, memory.size))
      throw failure(cudaErrorNotSupported, "its pages may contain other data; register whole pages");
    move_to_hpe(memory);
  } catch (const failure& why) {
    hpe::log(hpe::log_level::warn, "HPE_CHECK: CPU code that touches the registered memory at {} is not seen: {}",
             pointer, why.what());
  }
}

/// Replaces the pages of hpe memory by private pages with the same bytes. If the program has registered buffers in
/// these pages with io_uring in the meantime, the pages are not replaced, and hpe does not free their memory.
void move_back(const cudart_allocation& memory) {
  const std::span<char> own = pages_of(memory);
  if (io_uring_has(own)) {
    hpe::log(hpe::log_level::info,
             "cudaHostUnregister: the {} bytes at {} contain buffers of io_uring, so hpe does not free the pages of "
             "these bytes",
             memory.size, memory.base);
    return;
  }
  const auto mapped = process().memory().find(memory.device_base);
  void* const fresh = ::mmap(nullptr, own.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(fresh != MAP_FAILED && mapped.has_value(), cudaErrorMemoryAllocation);
  std::memcpy(fresh, own.data(), own.size());
  if (::mremap(fresh, own.size(), own.size(), MREMAP_MAYMOVE | MREMAP_FIXED, own.data()) == MAP_FAILED) {
    ::munmap(fresh, own.size());
    throw failure(cudaErrorMemoryAllocation);
  }
  process().memory().remove(mapped->base);
  check(::hpeFreeFinished(mapped->base));
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return api_call("cudaHostRegister", [&] {
    constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    require(pointer != nullptr && bytes > 0 &&
                hpe::saturated_sum(reinterpret_cast<std::uintptr_t>(pointer), bytes) != hpe::too_many_bytes,
            cudaErrorInvalidValue);
    require((flags & ~known) == 0, cudaErrorNotSupported);
    memory_table& memory = process().memory();
    const auto* const last = static_cast<const char*>(pointer) + bytes - 1;
    require(!memory.find(pointer) && !memory.find(last), cudaErrorHostMemoryAlreadyRegistered);
    memory.add({.base = pointer,
                .size = bytes,
                .kind = allocation_kind::registered,
                .device = process().current_device(),
                .flags = flags});
    if (checker() != nullptr) watch_registered(pointer);
  });
}

cudaError_t CUDARTAPI cudaHostUnregister(void* pointer) {
  return api_call("cudaHostUnregister", [&] {
    const auto found = process().memory().find(pointer);
    require(found.has_value() && found->kind == allocation_kind::registered, cudaErrorHostMemoryNotRegistered);
    require(found->base == pointer, cudaErrorInvalidValue);
    process().finish_work();
    if (found->device_base != found->base) move_back(*found);
    process().memory().remove(pointer);
  });
}

cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return api_call("cudaHostGetDevicePointer", [&] {
    require(device_pointer != nullptr && flags == 0, cudaErrorInvalidValue);
    const auto found = process().memory().find(pointer);
    require(found.has_value() && !found->is_on_device(), cudaErrorInvalidValue);
    const bool is_seen = found->kind == allocation_kind::host || found->device_base != found->base;
    auto* const base = static_cast<char*>(is_seen ? found->device_base : move_to_hpe(*found));
    *device_pointer = base + (static_cast<char*>(pointer) - static_cast<char*>(found->base));
  });
}
}
