#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/launcher.h"

namespace hpe::cuda_hooks {

/// An allocation of a CUDA program that is hpe memory, so hpe can move its data to host memory and back.
struct program_object {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  unsigned device = 0;
  unsigned long long number = 0;  ///< unique within the process
  bool for_every_launch = false;  ///< kernels may use the object although no parameter contains its address
};

/// The hpe memory that a piece of device work uses.
struct program_use {
  bool everything = false;  ///< the work may use any hpe memory that the device can access; `accesses` is ignored
  std::vector<hpeAccess> accesses{};
  std::vector<core::written_rows> rows{};  ///< see core::work_usage
  /// The work may also follow pointers in memory to any other hpe memory, so all of it must be mapped.
  bool follows_pointers = false;
  bool unsure = false;     ///< hpe does not know the kernel, which may leave the memory unchanged
  bool zero_copy = false;  ///< data that does not fit into device memory may be in zero-copy memory (work::residency)
  [[nodiscard]] bool none() const noexcept { return !everything && !follows_pointers && accesses.empty(); }
  void add(const program_object& object, hpeAccessMode mode) {
    auto* const base = reinterpret_cast<void*>(object.base);  // NOLINT(performance-no-int-to-ptr)
    accesses.push_back({base, object.bytes, mode});
  }
};

/// The table of the program's allocations that are hpe memory. Thread-safe.
class program_objects {
  using map = std::map<CUdeviceptr, program_object>;

 public:
  void add(CUdeviceptr base, std::size_t bytes, unsigned device);
  /// The result of remove(): the removed object; empty if no object starts at the address.
  using removed = map::node_type;
  [[nodiscard]] removed remove(CUdeviceptr base);
  void put_back(removed&& object) noexcept;

  /// Returns the object that contains the byte at an address; nullopt if no object does.
  [[nodiscard]] std::optional<program_object> find(CUdeviceptr address) const;
  /// Returns the objects that contain one of the addresses and the objects that every launch may use, each object once.
  [[nodiscard]] std::vector<program_object> find_all(const std::vector<CUdeviceptr>& addresses) const;
  [[nodiscard]] std::vector<program_object> on(unsigned device) const;
  [[nodiscard]] std::size_t bytes_on(unsigned device) const;

  /// Adds the objects that every launch may use, which launches only read: textures over linear memory.
  void add_textures(program_use& use) const;
  /// Records that every launch may use the object that contains an address. Has no effect if no object contains the
  /// address.
  void use_in_every_launch(CUdeviceptr address);

 private:
  /// Whether there may be an object that every launch may use. Costs one load.
  [[nodiscard]] bool any_for_every_launch() const noexcept { return for_every_launch_.load(std::memory_order_acquire); }

  mutable shared_mutex mutex_;
  map objects_ HPE_GUARDED_BY(mutex_);
  std::map<unsigned, std::size_t> bytes_ HPE_GUARDED_BY(mutex_);  // of all objects, by device
  unsigned long long made_ HPE_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> for_every_launch_{false};  // whether use_in_every_launch() has marked any object
};

}  // namespace hpe::cuda_hooks
