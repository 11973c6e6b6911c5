#include "interpose/gpu/work/graph_frees.h"

namespace hpe::cuda_hooks {

void graph_frees::add(CUgraph graph, CUdeviceptr address) {
  const lock_guard lock(mutex_);
  of_graphs_[graph].push_back(address);
  look();
}

void graph_frees::instantiated(CUgraphExec instance, CUgraph graph) {
  if (!any()) return;
  const lock_guard lock(mutex_);
  if (const auto found = of_graphs_.find(graph); found != of_graphs_.end()) of_instances_[instance] = found->second;
}

void graph_frees::destroyed(CUgraph graph) noexcept {
  if (!any()) return;
  const lock_guard lock(mutex_);
  of_graphs_.erase(graph);
  look();
}

void graph_frees::destroyed(CUgraphExec instance) noexcept {
  if (!any()) return;
  const lock_guard lock(mutex_);
  of_instances_.erase(instance);
  look();
}

}  // namespace hpe::cuda_hooks
