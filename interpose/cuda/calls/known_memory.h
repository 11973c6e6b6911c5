#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "interpose/cuda/granule_marks.h"
#include "interpose/cuda/program_contexts.h"

namespace hpe::cuda_hooks {

/// The allocations of the program that calls of libc and MPI have named, so that the driver is not asked for each call.
/// Forgotten when the program gives the memory back. Any thread.
class known_memory {
 public:
  known_memory(const device::cuda::driver& cu, const program_contexts& program) : cu_(cu), program_(program) {}

  struct allocation {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;  ///< to copy it in
  };
  /// The device memory at an address. Empty if there is none, or it is managed.
  [[nodiscard]] std::optional<allocation> at(CUdeviceptr address);

  /// What another process needs to map an allocation.
  struct shared_allocation {
    allocation what;
    unsigned long long number = 0;  ///< the driver's: no other allocation of the process ever has it
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  /// Empty also where the driver gives no handle: memory of pools, and what the program maps itself. All other is given
  /// back by calls that hpe sees.
  [[nodiscard]] std::optional<shared_allocation> shared_at(CUdeviceptr address);

  /// Whether there is anything to forget. One load.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// The program gives back what overlaps a range.
  void forget(CUdeviceptr begin, CUdeviceptr end) noexcept;
  void forget_all() noexcept { forget(0, ~CUdeviceptr{0}); }

  /// Near which addresses known memory is.
  [[nodiscard]] const granule_marks& marks() const noexcept { return marks_; }

 private:
  struct entry {
    allocation what;
    bool asked = false;  // for what follows
    unsigned long long number = 0;
    bool has_handle = false;
    CUipcMemHandle handle{};
    CUuuid device{};
  };
  [[nodiscard]] std::optional<entry> find(CUdeviceptr address) const;
  [[nodiscard]] std::optional<entry> find_or_ask(CUdeviceptr address);
  void share(entry& e) const;
  [[nodiscard]] unsigned long long number_of(const allocation& a) const noexcept;
  [[nodiscard]] CUuuid device_of(const allocation& a) const noexcept;

  const device::cuda::driver& cu_;
  const program_contexts& program_;
  mutable std::mutex mutex_;            // never held while the driver is called
  std::map<CUdeviceptr, entry> known_;  // by base
  std::uint64_t forgotten_ = 0;         // calls of forget
  std::atomic<bool> any_{false};
  granule_marks marks_;
};

}  // namespace hpe::cuda_hooks
