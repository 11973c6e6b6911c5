#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Records the allocations that the program's graphs free when they run. A record exists until its graph and all
/// instances of the graph are destroyed. Thread safe.
class graph_frees {
 public:
  /// Records that a node of a graph frees the allocation at an address.
  void add(CUgraph graph, CUdeviceptr address);
  /// To be called when the graph has been instantiated. CUDA allows at most one instance of a graph whose nodes free
  /// memory.
  void instantiated(CUgraphExec instance, CUgraph graph);
  /// To be called before a graph or an instance is destroyed.
  void destroyed(CUgraph graph) noexcept;
  void destroyed(CUgraphExec instance) noexcept;

  /// Whether any address is recorded. Costs one load.
  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// Returns the recorded addresses for which is_wanted(address) is true, each address once. Calls is_wanted() with the
  /// mutex locked.
  template <class IsWanted>
  [[nodiscard]] std::vector<CUdeviceptr> which(IsWanted is_wanted) const {
    std::vector<CUdeviceptr> result;
    const lock_guard lock(mutex_);
    const auto take = [&](const std::vector<CUdeviceptr>& from) {
      std::copy_if(from.begin(), from.end(), std::back_inserter(result), is_wanted);
    };
    for (const auto& [graph, addresses] : of_graphs_) take(addresses);
    for (const auto& [instance, addresses] : of_instances_) take(addresses);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

 private:
  void look() noexcept HPE_REQUIRES(mutex_) {
    any_.store(!of_graphs_.empty() || !of_instances_.empty(), std::memory_order_release);
  }

  std::atomic<bool> any_{false};
  mutable mutex mutex_;
  std::map<CUgraph, std::vector<CUdeviceptr>> of_graphs_ HPE_GUARDED_BY(mutex_);
  std::map<CUgraphExec, std::vector<CUdeviceptr>> of_instances_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
