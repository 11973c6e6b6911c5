#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "interpose/cuda/oversubscribed/oversubscribed.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// What the nodes of graphs use of the memory of hpe (hpe run --oversubscribe): a launch of an instantiated graph needs
/// all of it in device memory. Thread-safe.
class graph_memory {
 public:
  /// by_parameters: kernels use the allocations that their parameters point to; else everything.
  graph_memory(const device::cuda::driver& cu, bool by_parameters) : cu_(cu), by_parameters_(by_parameters) {}

  /// What a node uses. Addresses are looked up when the graph is launched, because memory comes and goes.
  struct use {
    bool anything = false;
    std::vector<CUdeviceptr> words;  ///< among the parameters of kernels
    std::vector<oversubscribed::range> ranges;
  };
  [[nodiscard]] static use of_copy(const CUDA_MEMCPY3D& copy);
  /// CUDA_MEMSET_NODE_PARAMS and its later form, whose members have the same names.
  template <class Fill>
  [[nodiscard]] static use of_fill(const Fill& fill) {
    const box_place place{fill.dst, fill.pitch, 0};
    const box_part whole{0, 0, 0, fill.width * fill.elementSize, fill.height, 1};
    use result;
    if (!whole.is_empty()) result.ranges.push_back({fill.dst, extent_of(place, whole), HPE_INOUT});
    return result;
  }
  /// function: or a CUkernel.
  [[nodiscard]] use of_kernel(CUfunction function, void** parameters, void** extra) const;
  /// All nodes of a graph together, of child graphs too.
  [[nodiscard]] use of_graph(CUgraph graph) const;

  /// A graph has been instantiated, or the instance updated by a graph.
  void instantiated(CUgraphExec instance, CUgraph graph);
  /// A node of an instance has other parameters from now on.
  void changed(CUgraphExec instance, CUgraphNode node, use now);
  void destroyed(CUgraphExec instance);
  /// What an instance uses. One that is not known may use anything.
  [[nodiscard]] use of_instance(CUgraphExec instance) const;

  [[nodiscard]] static movable_use movable(const oversubscribed& all, const use& what);
  /// The part of the use that the driver looks at before the graph is launched: kernels come later.
  [[nodiscard]] static movable_use looked_at(const oversubscribed& all, const use& what);

 private:
  static void add(use& to, const use& what);
  [[nodiscard]] std::map<CUgraphNode, use> of_nodes(CUgraph graph) const;
  [[nodiscard]] use of_node(CUgraphNode node) const;

  const device::cuda::driver& cu_;
  const bool by_parameters_;
  mutable std::mutex mutex_;
  std::map<CUgraphExec, std::map<CUgraphNode, use>> instances_;
};

}  // namespace hpe::cuda_hooks
