// Memory of the program that cudaHostRegister page-locks. hpe can copy any memory, so nothing needs locking. Soft
// devices are other processes. Their kernels see the memory only after the program asks for its device address: its
// pages are then replaced by pages of hpe host memory with the same bytes, and the program can use both addresses.
// Whole pages are replaced, so other data in the first and last page moves along; no thread may write that data during
// the call.

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "interpose/cudart/device/context.h"

using namespace hpe::cudart;

namespace {

constexpr std::uintptr_t page = 4096;

struct pages {
  char* begin;
  std::size_t bytes;
};

pages pages_of(const allocation& memory) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory.base) & ~(page - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(memory.base) + memory.size + page - 1) & ~(page - 1);
  return {reinterpret_cast<char*>(first), end - first};
}

/// The first whole page of an allocation of hpe's.
char* first_page(void* base) {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(base) + page - 1) & ~(page - 1));
}

/// Replaces the program's pages by pages of hpe host memory. Returns the address for kernels.
void* move_to_hpe(allocation memory) {
  const pages own = pages_of(memory);
  void* made = nullptr;
  check(::hpeMallocHost(&made, own.bytes + page));
  char* const shared = first_page(made);
  std::memcpy(shared, own.begin, own.bytes);
  // For a shared mapping and an old size of 0, mremap creates a second mapping of the same pages.
  void* const placed = ::mremap(shared, 0, own.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, own.begin);
  if (placed == MAP_FAILED || ::mprotect(own.begin, own.bytes, PROT_READ | PROT_WRITE) != 0) {
    if (placed == MAP_FAILED) ::hpeFree(made);
    throw failure(cudaErrorMemoryAllocation);
  }
  memory.device_base = shared + (static_cast<char*>(memory.base) - own.begin);
  process().memory().add(memory);
  process().memory().add({.base = made,
                          .size = own.bytes + page,
                          .kind = memory_kind::host,
                          .device = memory.device,
                          .flags = memory.flags});
  return memory.device_base;
}

/// Gives the program private pages again, with the current content.
void move_back(const allocation& memory) {
  const pages own = pages_of(memory);
  const auto mapped = process().memory().find(memory.device_base);
  void* const fresh = ::mmap(nullptr, own.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(fresh != MAP_FAILED && mapped.has_value(), cudaErrorMemoryAllocation);
  std::memcpy(fresh, own.begin, own.bytes);
  if (::mremap(fresh, own.bytes, own.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, own.begin) == MAP_FAILED) {
    ::munmap(fresh, own.bytes);
    throw failure(cudaErrorMemoryAllocation);
  }
  process().memory().remove(mapped->base);
  check(::hpeFree(mapped->base));
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return api_call("cudaHostRegister", [&] {
    constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    require(pointer != nullptr && bytes > 0, cudaErrorInvalidValue);
    require((flags & ~known) == 0, cudaErrorNotSupported);
    memory_table& memory = process().memory();
    const auto* const last = static_cast<const char*>(pointer) + bytes - 1;
    require(!memory.find(pointer) && !memory.find(last), cudaErrorHostMemoryAlreadyRegistered);
    memory.add({.base = pointer,
                .size = bytes,
                .kind = memory_kind::registered,
                .device = process().current_device(),
                .flags = flags});
  });
}

cudaError_t CUDARTAPI cudaHostUnregister(void* pointer) {
  return api_call("cudaHostUnregister", [&] {
    const auto found = process().memory().find(pointer);
    require(found.has_value() && found->kind == memory_kind::registered, cudaErrorHostMemoryNotRegistered);
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
    const bool is_seen = found->kind == memory_kind::host || found->device_base != found->base;
    auto* const base = static_cast<char*>(is_seen ? found->device_base : move_to_hpe(*found));
    *device_pointer = base + (static_cast<char*>(pointer) - static_cast<char*>(found->base));
  });
}
}
