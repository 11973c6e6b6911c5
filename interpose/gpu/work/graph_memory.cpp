#include "interpose/gpu/work/graph_memory.h"

#include <utility>

#include "interpose/shape/described_copy.h"

namespace hpe::cuda_hooks {

memory_uses graph_memory::of_copy(const CUDA_MEMCPY3D& copy) {
  const auto decoded = cuda_shape::decoded(copy);
  memory_uses result;
  if (!decoded || decoded->extent.is_empty()) return result;
  const box_copy shape = decoded->shape();
  if (!decoded->from.is_array) result.ranges.push_back({decoded->from.first(), shape.read().span(), false});
  if (!decoded->to.is_array) result.ranges.push_back({decoded->to.first(), shape.written().span(), true});
  return result;
}

memory_uses graph_memory::of_kernel(const kernel_launch& launch) const {
  const auto words = words_of(cu_, launch);
  return {.anything = scope_ == kernel_scope::all || !words,
          .words = words.value_or(std::vector<CUdeviceptr>()),
          .follows_pointers = scope_ == kernel_scope::automatic};
}

memory_uses graph_memory::of_node(CUgraphNode node) const {
  memory_uses unknown;
  unknown.anything = true;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (!asked(cu_.cuGraphNodeGetType, node, &type)) return unknown;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy{};
      return asked(cu_.cuGraphMemcpyNodeGetParams, node, &copy) ? of_copy(copy) : unknown;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill{};
      return asked(cu_.cuGraphMemsetNodeGetParams, node, &fill) ? of_fill(fill) : unknown;
    }
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS k{};
      if (!asked(cu_.cuGraphKernelNodeGetParams, node, &k)) return unknown;
      return of_kernel({function_of(k), k.kernelParams, k.extra});
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      return asked(cu_.cuGraphChildGraphNodeGetGraph, node, &child) ? of_graph(child) : unknown;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return {};
    default: return unknown;  // the driver does not report the graphs of conditional nodes
  }
}

std::map<CUgraphNode, memory_uses> graph_memory::of_nodes(CUgraph graph) const {
  const auto nodes = nodes_of(cu_, graph);
  if (!nodes) return {{nullptr, {.anything = true}}};
  std::map<CUgraphNode, memory_uses> result;
  for (const CUgraphNode node : *nodes) result[node] = of_node(node);
  return result;
}

memory_uses graph_memory::of_graph(CUgraph graph) const {
  memory_uses sum;
  for (const auto& [node, each] : of_nodes(graph)) add(sum, each);
  return sum;
}

void graph_memory::add(memory_uses& to, const memory_uses& what) {
  to.anything |= what.anything;
  to.follows_pointers |= what.follows_pointers;
  to.words.insert(to.words.end(), what.words.begin(), what.words.end());
  to.ranges.insert(to.ranges.end(), what.ranges.begin(), what.ranges.end());
}

void graph_memory::instantiated(CUgraphExec instance, CUgraph graph) noexcept {
  try {
    auto nodes = of_nodes(graph);
    const std::lock_guard lock(mutex_);
    instances_[instance] = std::move(nodes);
  } catch (const std::bad_alloc&) {
    destroyed(instance);
  }
}

// If hpe has no record of the instance, it does not know the other nodes, so it does not record this node either.
void graph_memory::changed(CUgraphExec instance, CUgraphNode node, function_ref<memory_uses()> use) noexcept {
  try {
    memory_uses now = use();
    const std::lock_guard lock(mutex_);
    if (const auto found = instances_.find(instance); found != instances_.end()) found->second[node] = std::move(now);
  } catch (const std::bad_alloc&) {
    destroyed(instance);
  }
}

void graph_memory::destroyed(CUgraphExec instance) noexcept {
  const std::lock_guard lock(mutex_);
  instances_.erase(instance);
}

memory_uses graph_memory::of_instance(CUgraphExec instance) const {
  const std::lock_guard lock(mutex_);
  memory_uses sum;
  const auto found = instances_.find(instance);
  sum.anything = found == instances_.end();
  if (!sum.anything)
    for (const auto& [node, each] : found->second) add(sum, each);
  return sum;
}

}  // namespace hpe::cuda_hooks
