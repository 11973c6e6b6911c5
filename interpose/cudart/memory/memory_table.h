#pragma once

/// The program's CUDA allocations, by address. Thread-safe.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::cudart {

enum class memory_kind : std::uint8_t {
  device,      // cudaMalloc and its variants
  managed,     // cudaMallocManaged
  host,        // cudaMallocHost, cudaHostAlloc
  registered,  // the program's own, by cudaHostRegister
  pool,        // cudaMallocAsync
  mapped,      // by cuMemMap; the flags have a bit for each device that may use it
  variable,    // of a module, which frees it
  managed_variable,
  imported,  // from another process
};

struct allocation {
  void* base = nullptr;
  std::size_t size = 0;
  memory_kind kind = memory_kind::device;
  int device = 0;               // its home; for host memory the device that was current when it was allocated
  unsigned flags = 0;           // as given to cudaHostAlloc, cudaHostRegister or cudaMallocManaged
  void* device_base = nullptr;  // its address for kernels; differs from base only for registered memory
  std::uint64_t id = 0;         // given by memory_table::add, never used again in this process

  [[nodiscard]] bool holds(const void* address, std::size_t bytes) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
    return offset <= size && bytes <= size - offset;
  }
  [[nodiscard]] bool is_managed() const noexcept {
    return kind == memory_kind::managed || kind == memory_kind::managed_variable;
  }
  [[nodiscard]] bool is_on_device() const noexcept {
    return kind != memory_kind::host && kind != memory_kind::registered;
  }
  /// Whether kernels on other devices than the home may use it even without peer access to the home.
  [[nodiscard]] bool is_for_other_devices() const noexcept {
    const bool has_devices_in_flags = kind == memory_kind::pool || kind == memory_kind::mapped;
    return kind == memory_kind::managed || (has_devices_in_flags && (flags & ~(1U << device)) != 0);
  }
};

class memory_table {
 public:
  void add(const allocation& made);

  /// A lock during which no allocation is removed; held between accesses() and the launch that names them to hpe.
  [[nodiscard]] std::shared_lock<std::shared_mutex> keep() const { return std::shared_lock(kept_); }

  /// Removes the allocation with this base, if there is one. The calling thread must not hold keep().
  std::optional<allocation> remove(const void* base);

  /// The allocation that contains an address, or nothing. The end of an allocation is outside of it.
  [[nodiscard]] std::optional<allocation> find(const void* address) const;

  /// Accesses for a launch: one for each allocation for which `choice` is true.
  template <class Choice>
  [[nodiscard]] std::vector<hpeAccess> accesses(const Choice& choice) const {
    const std::shared_lock lock(mutex_);
    std::vector<hpeAccess> named;
    for (const auto& [base, each] : allocations_) {
      if (choice(each)) named.push_back({each.device_base, each.size, HPE_INOUT});
    }
    return named;
  }

  [[nodiscard]] bool is_empty() const;  ///< of memory that belongs to a device

  /// Whether any allocation has is_for_other_devices(). Costs one load.
  [[nodiscard]] bool any_for_other_devices() const noexcept { return for_other_devices_ != 0; }

  /// Removes and returns all allocations of a device, for cudaDeviceReset.
  std::vector<allocation> remove_all(int device);

 private:
  mutable std::shared_mutex kept_;  // locked before mutex_
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, allocation> allocations_;  // by base
  std::uint64_t added_ = 0;
  std::atomic<std::size_t> for_other_devices_{0};
};

}  // namespace hpe::cudart
