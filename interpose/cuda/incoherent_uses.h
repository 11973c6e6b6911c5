#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interpose/cuda/adopted_region.h"

namespace hpe::cuda_hooks {

/// Uses of device memory that cannot be made coherent with CPU code, because somebody has the memory whose accesses hpe
/// does not see, or waits for what CPU code writes. Each is told once for each kind and region, with the place in the
/// program. Any thread.
class incoherent_uses {
 public:
  enum class kind : std::uint8_t {
    exported,  ///< to another process, by an IPC handle or as a pointer of a pool
    opened,    ///< from another process
    external,  ///< memory of another API (Vulkan, Direct3D)
    graphics,  ///< a mapped graphics resource
    awaited,   ///< a stream waits until a value is there
    capture,   ///< CPU code reads while a stream is captured
  };

  /// The calling thread's program shares a range in such a way. Told now where the host has touched `region` of it
  /// (empty: it has not), else when it does.
  void shares(kind how, adopted_region::bytes range, adopted_region::bytes region);
  /// The host touches a region for the first time.
  void touched(adopted_region::bytes region);
  /// The region is used in such a way just now, by the calling thread.
  void warn(kind how, adopted_region::bytes region);
  /// Whether there is anything to forget.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
  /// The program gives a range back.
  void forget(adopted_region::bytes range);

  /// Memory that the program maps itself, and handles by which it shares such memory: the ranges that become shared by
  /// it.
  using allocation = CUmemGenericAllocationHandle;
  [[nodiscard]] std::vector<adopted_region::bytes> shares_handle(kind how, allocation handle);
  /// The kind of sharing of the handle, if it is shared.
  [[nodiscard]] std::optional<kind> maps(allocation handle, adopted_region::bytes range);
  /// The program lets go of a handle, whose number another allocation may get.
  void releases(allocation handle);

  /// Textures over linear memory, whose addresses do not show in the parameters of kernels.
  void add_texture(CUtexObject object, CUdeviceptr address);
  void remove_texture(CUtexObject object);
  template <class Visit>
  void for_each_texture(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, address] : textures_) visit(address);
  }

 private:
  struct note {
    kind how;
    adopted_region::bytes range;
    std::string place;
  };

  void tell(kind how, adopted_region::bytes region, const std::string& place);

  std::atomic<bool> any_{false};  // for good
  mutable std::mutex mutex_;
  std::vector<note> notes_;
  std::set<std::pair<kind, CUdeviceptr>> told_;
  std::map<CUtexObject, CUdeviceptr> textures_;
  std::multimap<allocation, adopted_region::bytes> mapped_;
  std::map<allocation, kind> handles_;
};

}  // namespace hpe::cuda_hooks
