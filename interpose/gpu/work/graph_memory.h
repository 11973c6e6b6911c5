#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/work/graph_nodes.h"
#include "interpose/gpu/work/launch_parameters.h"
#include "runtime/base/options.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Records which memory the nodes of graph instances use. The launch of an instance (CUgraphExec) uses the memory of
/// all its nodes. Thread-safe.
class graph_memory {
 public:
  /// scope: which memory kernels may use (HPE_SCOPE).
  graph_memory(const device::cuda::driver& cu, kernel_scope scope) : cu_(cu), scope_(scope) {}

  // The next functions return the memory that a node uses, as addresses and ranges. hpe looks up the allocations at
  // these addresses at each launch of the graph, because the program may allocate and free memory between launches.
  [[nodiscard]] static memory_uses of_copy(const CUDA_MEMCPY3D& copy);
  template <class Fill>
  [[nodiscard]] static memory_uses of_fill(const Fill& fill) {
    const box whole = box_of(fill);
    memory_uses result;
    if (!whole.extent.is_empty()) result.ranges.push_back({fill.dst, whole.span(), true});
    return result;
  }
  [[nodiscard]] memory_uses of_kernel(const kernel_launch& launch) const;
  /// Returns the memory that all nodes of a graph use, including the nodes of its child graphs.
  [[nodiscard]] memory_uses of_graph(CUgraph graph) const;

  /// To be called when a graph has been instantiated, or an instance has been updated from a graph. If host memory is
  /// too short, hpe does not record the instance.
  void instantiated(CUgraphExec instance, CUgraph graph) noexcept;
  /// To be called when the parameters of a node of an instance have changed; use() returns the memory that the node
  /// uses after the change.
  void changed(CUgraphExec instance, CUgraphNode node, function_ref<memory_uses()> use) noexcept;
  void destroyed(CUgraphExec instance) noexcept;
  /// Returns the memory that an instance uses. An instance that is not recorded may use any memory.
  [[nodiscard]] memory_uses of_instance(CUgraphExec instance) const;

 private:
  static void add(memory_uses& to, const memory_uses& what);
  [[nodiscard]] std::map<CUgraphNode, memory_uses> of_nodes(CUgraph graph) const;
  [[nodiscard]] memory_uses of_node(CUgraphNode node) const;

  const device::cuda::driver& cu_;
  const kernel_scope scope_;
  mutable std::mutex mutex_;
  std::map<CUgraphExec, std::map<CUgraphNode, memory_uses>> instances_;
};

}  // namespace hpe::cuda_hooks
