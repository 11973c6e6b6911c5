#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/base/function_ref.h"
#include "runtime/base/thread_safety.h"

namespace hpe::core {
class allocator;
}

namespace hpe::cuda_hooks {

/// Memory that the driver allocates for the program and that stays on its device.
struct driver_allocation {
  /// The name by which the program refers to the memory: the address of cuMemAlloc, or the handle of cuMemCreate.
  enum class name_kind : std::uint8_t { address, handle };
  name_kind named_by = name_kind::address;
  std::optional<CUdevice> device;  ///< nullopt: the device of the current context
  std::size_t bytes = 0;
};

/// A successful call of the program that frees memory of the driver, or adds or removes a handle or a mapping of it.
struct driver_allocation_event {
  enum class step : std::uint8_t {
    freed,     ///< `address` was freed
    retained,  ///< the program has one more reference to `handle`
    released,  ///< the program has one reference less
    mapped,    ///< `handle` is mapped at `address`
    unmapped,  ///< all mappings in `bytes` bytes at `address` were removed
  };
  step what{};
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
};

/// Lets the driver allocate memory, and sets its argument to the memory's address or handle.
using driver_call = function_ref<CUresult(std::uint64_t&)>;

/// The device memory that the driver has allocated for the program and that stays on its device: small allocations, and
/// the memory of cuMemCreate, which exists until all its handles are released and all its mappings are removed. hpe
/// uses this much less of the device's memory. Thread-safe.
class driver_allocations {
 public:
  explicit driver_allocations(core::allocator& memory) : memory_(memory) {}

  /// Evicts data of hpe memory if the device has too little free memory, and lets the driver allocate the memory.
  /// Returns CUDA_ERROR_OUT_OF_MEMORY if the device has too little in all (HPE_DEVICE_MEMORY). `context`: the driver
  /// frees the memory when this context ends; null for the memory of cuMemCreate.
  CUresult allocate(const driver_allocation& what, unsigned device, CUcontext context, driver_call call);
  /// If host memory is too short to record a mapping, the memory counts only as long as the program has its handle.
  void note(const driver_allocation_event& event);
  /// Removes the allocations of a context. Calls free(address) for each of them.
  void end(CUcontext context, function_ref<void(CUdeviceptr)> free);

 private:
  struct counted_allocation {
    unsigned device = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;
    std::size_t references = 1;  // for the memory of cuMemCreate: how many handles and mappings refer to it
  };
  using table = std::map<std::uint64_t, counted_allocation>;

  void add(driver_allocation::name_kind kind, std::uint64_t name, table::node_type&& made) noexcept;
  void keep(std::uint64_t handle) HPE_REQUIRES(mutex_);
  /// Ends a reference to the memory of cuMemCreate.
  void drop(std::uint64_t handle) noexcept HPE_REQUIRES(mutex_);
  void restore(const counted_allocation& ended) noexcept;

  core::allocator& memory_;
  mutex mutex_;
  table by_address_ HPE_GUARDED_BY(mutex_);
  table by_handle_ HPE_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, std::uint64_t> mapped_ HPE_GUARDED_BY(mutex_);  // by address: the handle of the mapping
};

}  // namespace hpe::cuda_hooks
