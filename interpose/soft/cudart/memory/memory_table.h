#pragma once

/// The table of the program's CUDA allocations. Thread-safe.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

enum class allocation_kind : std::uint8_t {
  device,      // allocated by cudaMalloc and its variants
  managed,     // allocated by cudaMallocManaged
  host,        // allocated by cudaMallocHost or cudaHostAlloc
  registered,  // the program's own memory, registered by cudaHostRegister
  pool,        // allocated by cudaMallocAsync or a graph; `flags` contains a bit for each other device with access
  mapped,      // mapped by cuMemMap; `flags` contains a bit for each device that may use the memory
  variable,    // a variable of a module, which frees the memory
  managed_variable,
  imported,  // memory that another process has exported
};

struct cudart_allocation {
  void* base = nullptr;
  std::size_t size = 0;
  allocation_kind kind = allocation_kind::device;
  int device = 0;      // the device on which the memory is allocated (its home); for host memory, the device that was
                       // current at the allocation
  unsigned flags = 0;  // the flags of cudaHostAlloc, cudaHostRegister or cudaMallocManaged; for kinds pool and mapped,
                       // a bit for each device with access
  void* device_base = nullptr;  // the address for kernels; differs from base only for registered memory
  void* registered = nullptr;  // of hpe's memory behind registered memory, of which the program knows nothing: the base
                               // of the registered memory
  std::uint64_t id = 0;        // set by memory_table::add, not reused in this process

  [[nodiscard]] bool holds(const void* address, std::size_t bytes) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
    return offset <= size && bytes <= size - offset;
  }
  [[nodiscard]] bool is_managed() const noexcept {
    return kind == allocation_kind::managed || kind == allocation_kind::managed_variable;
  }
  [[nodiscard]] bool is_on_device() const noexcept {
    return kind != allocation_kind::host && kind != allocation_kind::registered;
  }
  /// Whether kernels on devices other than `device` may use the allocation even without peer access to `device`.
  [[nodiscard]] bool is_for_other_devices() const noexcept {
    const bool has_devices_in_flags = kind == allocation_kind::pool || kind == allocation_kind::mapped;
    return kind == allocation_kind::managed || (has_devices_in_flags && (flags & ~(1U << device)) != 0);
  }
};

class memory_table {
 public:
  void add(const cudart_allocation& made);

  /// Returns a lock; while the lock exists, remove() waits. A launch holds the lock from its call of accesses() until
  /// it has passed the accesses to hpe.
  [[nodiscard]] std::shared_lock<std::shared_mutex> keep() const { return std::shared_lock(kept_); }

  /// Removes the allocation with this base; returns nullopt if no allocation has this base. The calling thread must not
  /// hold the lock of keep().
  std::optional<cudart_allocation> remove(const void* base);

  /// Returns the allocation that contains an address; nullopt if no allocation contains the address. The address after
  /// the last byte is outside the allocation.
  [[nodiscard]] std::optional<cudart_allocation> find(const void* address) const;

  /// Like find, but also finds hpe memory on devices that is not in the table: an array of hpeMalloc, or a module
  /// variable whose address a kernel has stored. For CUDA, this memory is managed memory, because the host and all
  /// devices may use it.
  [[nodiscard]] std::optional<cudart_allocation> find_also_of_hpe(const void* address) const;

  /// Returns the accesses for a launch: one access for each allocation for which choice(allocation) is true.
  template <class Choice>
  [[nodiscard]] std::vector<hpeAccess> accesses(const Choice& choice) const {
    const shared_lock_guard lock(mutex_);
    std::vector<hpeAccess> named;
    for (const auto& [base, each] : allocations_) {
      if (choice(each)) named.push_back({each.device_base, each.size, HPE_INOUT});
    }
    return named;
  }

  [[nodiscard]] bool is_empty() const;  ///< whether the program has no allocation on a device

  /// Whether is_for_other_devices() is true for any allocation. Costs one load.
  [[nodiscard]] bool any_for_other_devices() const noexcept { return for_other_devices_ != 0; }

  /// Removes and returns all allocations on a device, for cudaDeviceReset.
  std::vector<cudart_allocation> remove_all(int device);

 private:
  mutable std::shared_mutex kept_;  // locked before mutex_
  mutable shared_mutex mutex_;
  std::map<std::uintptr_t, cudart_allocation> allocations_ HPE_GUARDED_BY(mutex_);  // by base address
  std::uint64_t added_ HPE_GUARDED_BY(mutex_) = 0;
  std::atomic<std::size_t> for_other_devices_{0};
};

}  // namespace hpe::cudart
