#include "interpose/cuda/work/graph_memory.h"

#include <utility>

#include "interpose/cuda/copies/copy_boxes.h"
#include "interpose/cuda/work/launch_scope.h"

namespace hpe::cuda_hooks {

graph_memory::use graph_memory::of_copy(const CUDA_MEMCPY3D& copy) {
  const copied_box box = box_of(copy);
  use result;
  if (box.whole.is_empty()) return result;
  if (box.from) result.ranges.push_back({box.from->base, extent_of(*box.from, box.whole), HPE_IN});
  if (box.to) result.ranges.push_back({box.to->base, extent_of(*box.to, box.whole), HPE_INOUT});
  return result;
}

graph_memory::use graph_memory::of_kernel(CUfunction function, void** parameters, void** extra) const {
  auto words = by_parameters_ ? words_of(cu_, {function, parameters, extra}) : std::nullopt;
  if (!words) return {.anything = true, .words = {}, .ranges = {}};
  return {.anything = false, .words = std::move(*words), .ranges = {}};
}

graph_memory::use graph_memory::of_node(CUgraphNode node) const {
  constexpr auto asked = [](auto entry, auto... arguments) {
    return entry != nullptr && entry(arguments...) == CUDA_SUCCESS;
  };
  use unknown;
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
      return of_kernel(k.func != nullptr ? k.func : reinterpret_cast<CUfunction>(k.kern), k.kernelParams, k.extra);
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
    default: return unknown;  // conditional nodes do not tell their graphs
  }
}

std::map<CUgraphNode, graph_memory::use> graph_memory::of_nodes(CUgraph graph) const {
  std::size_t count = 0;
  const auto list = cu_.cuGraphGetNodes;
  if (list == nullptr || list(graph, nullptr, &count) != CUDA_SUCCESS) return {{nullptr, {true, {}, {}}}};
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && list(graph, nodes.data(), &count) != CUDA_SUCCESS) return {{nullptr, {true, {}, {}}}};
  std::map<CUgraphNode, use> result;
  for (const CUgraphNode node : nodes) result[node] = of_node(node);
  return result;
}

graph_memory::use graph_memory::of_graph(CUgraph graph) const {
  use sum;
  for (const auto& [node, each] : of_nodes(graph)) add(sum, each);
  return sum;
}

void graph_memory::add(use& to, const use& what) {
  to.anything |= what.anything;
  to.words.insert(to.words.end(), what.words.begin(), what.words.end());
  to.ranges.insert(to.ranges.end(), what.ranges.begin(), what.ranges.end());
}

void graph_memory::instantiated(CUgraphExec instance, CUgraph graph) {
  auto nodes = of_nodes(graph);
  const std::lock_guard lock(mutex_);
  instances_[instance] = std::move(nodes);
}

// Of an instance that is not known the other nodes are not known either.
void graph_memory::changed(CUgraphExec instance, CUgraphNode node, use now) {
  const std::lock_guard lock(mutex_);
  if (const auto found = instances_.find(instance); found != instances_.end()) found->second[node] = std::move(now);
}

void graph_memory::destroyed(CUgraphExec instance) {
  const std::lock_guard lock(mutex_);
  instances_.erase(instance);
}

graph_memory::use graph_memory::of_instance(CUgraphExec instance) const {
  const std::lock_guard lock(mutex_);
  use sum;
  const auto found = instances_.find(instance);
  sum.anything = found == instances_.end();
  if (!sum.anything)
    for (const auto& [node, each] : found->second) add(sum, each);
  return sum;
}

movable_use graph_memory::looked_at(const oversubscribed& all, const use& what) { return all.use_of(what.ranges); }

movable_use graph_memory::movable(const oversubscribed& all, const use& what) {
  if (what.anything) return all.use_of(std::nullopt);
  movable_use result = all.use_of(what.words);
  const movable_use more = looked_at(all, what);
  result.accesses.insert(result.accesses.end(), more.accesses.begin(), more.accesses.end());
  return result;
}

}  // namespace hpe::cuda_hooks
