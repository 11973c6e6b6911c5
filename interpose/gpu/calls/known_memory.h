#pragma once

#include <atomic>
#include <map>
#include <optional>

#include "interpose/gpu/adopted/granule_marks.h"
#include "interpose/gpu/work/program_contexts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Memory of the program, as known_memory describes it.
struct known_allocation {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUcontext context = nullptr;  ///< the context in which the allocation's bytes are copied
  /// Whether the program allocated the memory, directly or from a pool. hpe assumes that a kernel that uses this
  /// memory has a pointer to it among its parameters. Kernels can use other memory without such a parameter: the
  /// kernel's code contains the addresses of module variables, and mapped memory may have a second mapping.
  bool is_allocated = false;
};

/// Caches the program's allocations that libc and MPI calls have used, so that most calls need not query the driver.
/// When the program frees an allocation, hpe removes it from the cache. Thread safe.
class known_memory {
 public:
  known_memory(const device::cuda::driver& cu, const program_contexts& program) : cu_(cu), program_(program) {}

  /// Returns the allocation that contains an address; nullopt if the address is not in device memory, or if the memory
  /// is managed.
  [[nodiscard]] std::optional<known_allocation> at(CUdeviceptr address);

  /// Describes an allocation to another process, which can map it with this description.
  struct shared_allocation {
    known_allocation what;
    unsigned long long number = 0;  ///< the driver's buffer ID, which the driver never reuses in this process
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  /// Like at(), but also returns nullopt if the driver has no IPC handle for the memory, as for memory of pools and
  /// memory that the program maps itself.
  [[nodiscard]] std::optional<shared_allocation> shared_at(CUdeviceptr address);

  /// Whether any allocation is in the cache. Costs one load.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Removes the allocations that overlap a range from the cache. To be called when the program frees the range.
  void forget(CUdeviceptr begin, CUdeviceptr end) noexcept;
  void forget_all() noexcept { forget(0, ~CUdeviceptr{0}); }

  /// The marks of the granules that contain allocations in the cache.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

 private:
  struct cached_allocation {
    known_allocation what;
    std::uint64_t made = 0;  // the number of this entry, which is never reused
    bool asked = false;      // whether hpe has queried the driver for the members below
    unsigned long long number = 0;
    bool has_handle = false;
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  [[nodiscard]] std::optional<cached_allocation> find(CUdeviceptr address) const HPE_REQUIRES(mutex_);
  [[nodiscard]] std::optional<cached_allocation> find_or_ask(CUdeviceptr address);
  [[nodiscard]] bool is_allocated(CUdeviceptr base) const noexcept;
  void share(cached_allocation& e) const;
  [[nodiscard]] unsigned long long number_of(const known_allocation& a) const noexcept;
  [[nodiscard]] CUuuid device_of(const known_allocation& a) const noexcept;

  const device::cuda::driver& cu_;
  const program_contexts& program_;
  mutable mutex mutex_;                                                    // not held while hpe calls the driver
  std::map<CUdeviceptr, cached_allocation> known_ HPE_GUARDED_BY(mutex_);  // the key is the base
  std::uint64_t forgotten_ HPE_GUARDED_BY(mutex_) = 0;                     // the number of calls of forget
  std::uint64_t made_ HPE_GUARDED_BY(mutex_) = 0;                          // the number of the last entry
  std::atomic<bool> any_{false};
  granule_marks marks_;
};

}  // namespace hpe::cuda_hooks
