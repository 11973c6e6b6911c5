#pragma once

#include <atomic>
#include <map>
#include <optional>

#include "interpose/cuda/adopted/granule_marks.h"
#include "interpose/cuda/work/program_contexts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Caches the allocations of the program that libc and MPI calls have used, so that not every call asks the driver. An
/// allocation is forgotten when the program frees it. Thread safe.
class known_memory {
 public:
  known_memory(const device::cuda::driver& cu, const program_contexts& program) : cu_(cu), program_(program) {}

  struct allocation {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;  ///< the context for copies of the allocation
    /// The program has allocated it, by itself or from a pool. Kernels may use variables of modules without a
    /// parameter, and mappings by a parameter that names another mapping.
    bool is_allocated = false;
  };
  /// The device memory at an address. Empty if there is none, or if the memory is managed.
  [[nodiscard]] std::optional<allocation> at(CUdeviceptr address);

  /// What another process needs to map an allocation.
  struct shared_allocation {
    allocation what;
    unsigned long long number = 0;  ///< the driver's buffer ID, which the process never reuses
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  /// Also empty if the driver gives no handle: for memory of pools, and memory that the program maps itself. The
  /// program frees all other memory by calls that hpe intercepts.
  [[nodiscard]] std::optional<shared_allocation> shared_at(CUdeviceptr address);

  /// Whether any allocation is known. Costs one load.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// The program frees the allocations that overlap a range.
  void forget(CUdeviceptr begin, CUdeviceptr end) noexcept;
  void forget_all() noexcept { forget(0, ~CUdeviceptr{0}); }

  /// Marks the granules of known allocations.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

 private:
  struct entry {
    allocation what;
    std::uint64_t made = 0;  // number of the entry; other memory at the same address gets another one
    bool asked = false;      // whether the driver was asked for the members below
    unsigned long long number = 0;
    bool has_handle = false;
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  [[nodiscard]] std::optional<entry> find(CUdeviceptr address) const HPE_REQUIRES(mutex_);
  [[nodiscard]] std::optional<entry> find_or_ask(CUdeviceptr address);
  [[nodiscard]] bool is_allocated(CUdeviceptr base) const noexcept;
  void share(entry& e) const;
  [[nodiscard]] unsigned long long number_of(const allocation& a) const noexcept;
  [[nodiscard]] CUuuid device_of(const allocation& a) const noexcept;

  const device::cuda::driver& cu_;
  const program_contexts& program_;
  mutable mutex mutex_;                                        // never held while the driver is called
  std::map<CUdeviceptr, entry> known_ HPE_GUARDED_BY(mutex_);  // by base
  std::uint64_t forgotten_ HPE_GUARDED_BY(mutex_) = 0;         // number of calls of forget
  std::uint64_t made_ HPE_GUARDED_BY(mutex_) = 0;              // number of the last entry
  std::atomic<bool> any_{false};
  granule_marks marks_;
};

}  // namespace hpe::cuda_hooks
