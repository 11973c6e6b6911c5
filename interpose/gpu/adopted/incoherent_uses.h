#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interpose/gpu/adopted/adopted_region.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// The ways of using device memory that hpe cannot make coherent with CPU code.
enum class incoherent_use : std::uint8_t {
  exported,  ///< shared with another process, by an IPC handle or as a pointer of a pool
  opened,    ///< opened from another process
  external,  ///< memory of another API (Vulkan, Direct3D)
  graphics,  ///< mapped graphics resource
  awaited,   ///< memory in which a stream waits for a value
  messages,  ///< left to the MPI library for an operation that outlives its call
  capture,   ///< memory that CPU code touches during a stream capture
};

/// Records uses of device memory that hpe cannot make coherent with CPU code: other processes or APIs access the memory
/// without hpe's knowledge, or a stream waits for a value that CPU code writes. hpe reports each kind of use once for
/// each region, together with the location of the call in the program. Thread safe.
class incoherent_uses {
 public:
  /// To be called by the program's thread in the call that shares a range. `region` is a region that CPU code has
  /// touched, or an empty range. If the range overlaps `region`, hpe reports the use at once; otherwise hpe reports it
  /// when CPU code first touches the range.
  void shares(incoherent_use how, adopted_region::bytes range, adopted_region::bytes region);
  /// To be called when CPU code touches a region for the first time.
  void touched(adopted_region::bytes region);
  /// To be called when the calling thread uses a touched region in the way `how`.
  void warn(incoherent_use how, adopted_region::bytes region);
  /// Whether any use or mapping has ever been recorded. If not, forget() has no effect.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// Whether forget() would remove a record for this address.
  [[nodiscard]] bool concern(CUdeviceptr address) const;
  /// To be called when the program frees a range.
  void forget(adopted_region::bytes range);

  /// The next three functions record the memory that the program maps itself (cuMemMap), and the handles through which
  /// the program shares that memory. `shares_handle` records that the program shares a handle, and returns the ranges
  /// at which the handle's allocation is mapped.
  using allocation = CUmemGenericAllocationHandle;
  [[nodiscard]] std::vector<adopted_region::bytes> shares_handle(incoherent_use how, allocation handle);
  /// To be called when the program maps an allocation. Returns how the program shares the allocation's handle; nullopt
  /// if the program does not share it.
  [[nodiscard]] std::optional<incoherent_use> maps(allocation handle, adopted_region::bytes range);
  /// To be called when the program releases a handle, because the driver may reuse the handle's value for another
  /// allocation.
  void releases(allocation handle);

  /// Record and remove textures over linear memory. Kernels use this memory although no parameter of a launch contains
  /// the memory's address.
  void add_texture(CUtexObject object, CUdeviceptr address);
  void remove_texture(CUtexObject object);
  template <class Visit>
  void for_each_texture(Visit visit) const {
    const lock_guard lock(mutex_);
    for (const auto& [object, address] : textures_) visit(address);
  }

 private:
  struct note {
    incoherent_use how;
    adopted_region::bytes range;
    std::string place;
  };

  void tell(incoherent_use how, adopted_region::bytes region, const std::string& place) HPE_REQUIRES(mutex_);

  std::atomic<bool> any_{false};  // never set back to false
  mutable mutex mutex_;
  std::vector<note> notes_ HPE_GUARDED_BY(mutex_);
  std::set<std::pair<incoherent_use, CUdeviceptr>> told_ HPE_GUARDED_BY(mutex_);
  std::map<CUtexObject, CUdeviceptr> textures_ HPE_GUARDED_BY(mutex_);
  std::multimap<allocation, adopted_region::bytes> mapped_ HPE_GUARDED_BY(mutex_);
  std::map<allocation, incoherent_use> handles_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
