#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interpose/cuda/adopted/adopted_region.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Uses of device memory that cannot be made coherent with CPU code, because others access the memory without hpe's
/// knowledge, or because a stream waits for a value that CPU code writes. Each kind is reported once per region, with
/// the place in the program. Thread safe.
class incoherent_uses {
 public:
  enum class kind : std::uint8_t {
    exported,  ///< to another process, by an IPC handle or as a pointer of a pool
    opened,    ///< from another process
    external,  ///< memory of another API (Vulkan, Direct3D)
    graphics,  ///< a mapped graphics resource
    awaited,   ///< a stream waits for a value in memory
    capture,   ///< CPU code reads during a stream capture
  };

  /// The program's call in this thread shares a range. Reports it now if the host has touched `region` of the range
  /// (empty: nothing), else when the host does.
  void shares(kind how, adopted_region::bytes range, adopted_region::bytes region);
  /// To be called when the host touches a region for the first time.
  void touched(adopted_region::bytes region);
  /// The calling thread uses the region in this way now.
  void warn(kind how, adopted_region::bytes region);
  /// Whether forget() has anything to do.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// To be called when the program frees a range.
  void forget(adopted_region::bytes range);

  /// Memory that the program maps itself, and handles by which it shares it. shares_handle returns the mapped ranges
  /// that become shared.
  using allocation = CUmemGenericAllocationHandle;
  [[nodiscard]] std::vector<adopted_region::bytes> shares_handle(kind how, allocation handle);
  /// The program maps an allocation. Returns how its handle is shared, if it is.
  [[nodiscard]] std::optional<kind> maps(allocation handle, adopted_region::bytes range);
  /// The program releases a handle, which the driver may give to another allocation.
  void releases(allocation handle);

  /// Textures over linear memory, whose addresses are not among the parameters of kernels.
  void add_texture(CUtexObject object, CUdeviceptr address);
  void remove_texture(CUtexObject object);
  template <class Visit>
  void for_each_texture(Visit visit) const {
    const lock_guard lock(mutex_);
    for (const auto& [object, address] : textures_) visit(address);
  }

 private:
  struct note {
    kind how;
    adopted_region::bytes range;
    std::string place;
  };

  void tell(kind how, adopted_region::bytes region, const std::string& place) HPE_REQUIRES(mutex_);

  std::atomic<bool> any_{false};  // never reset
  mutable mutex mutex_;
  std::vector<note> notes_ HPE_GUARDED_BY(mutex_);
  std::set<std::pair<kind, CUdeviceptr>> told_ HPE_GUARDED_BY(mutex_);
  std::map<CUtexObject, CUdeviceptr> textures_ HPE_GUARDED_BY(mutex_);
  std::multimap<allocation, adopted_region::bytes> mapped_ HPE_GUARDED_BY(mutex_);
  std::map<allocation, kind> handles_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
