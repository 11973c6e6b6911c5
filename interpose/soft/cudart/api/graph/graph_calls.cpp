// The CUDA runtime's functions for graphs: creation, nodes and edges.

#include "interpose/soft/cudart/api/graph/graph_calls.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <fstream>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"

using namespace hpe::cudart;

namespace hpe::cudart {

graph_node& node_of(cudaGraphNode_t handle) { return process().graphs().find(handle); }

std::vector<graph_node*> nodes_of(const cudaGraphNode_t* handles, std::size_t count) {
  require(handles != nullptr || count == 0, cudaErrorInvalidValue);
  std::vector<graph_node*> result(count);
  std::transform(handles, handles + count, result.begin(), [](auto each) { return &process().graphs().find(each); });
  return result;
}

void require_plain_edges(const cudaGraphEdgeData* edges, std::size_t count) {
  for (std::size_t i = 0; edges != nullptr && i < count; ++i) {
    require(edges[i].from_port == 0 && edges[i].to_port == 0 && edges[i].type == cudaGraphDependencyTypeDefault,
            cudaErrorNotSupported);
  }
}

}  // namespace hpe::cudart

namespace {

graph& graph_of(cudaGraph_t handle) { return process().graphs().find(handle); }
/// Programs query a list of nodes twice: first with `out` null, for the number of nodes, and then for the nodes. Unused
/// elements of `out` become null.
void tell_nodes(const std::vector<graph_node*>& nodes, cudaGraphNode_t* out, size_t* count) {
  require(count != nullptr, cudaErrorInvalidValue);
  if (out == nullptr) {
    *count = nodes.size();
    return;
  }
  for (std::size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? handle_of(*nodes[i]) : nullptr;
  *count = std::min(*count, nodes.size());
}

std::vector<graph_node*> all_nodes(const graph& of, bool roots_only) {
  std::vector<graph_node*> result;
  for (const auto& each : of.nodes()) {
    if (!roots_only || each->before().empty()) result.push_back(each.get());
  }
  return result;
}

void tell_neighbours(const std::vector<graph_node*>& nodes, cudaGraphNode_t* out, cudaGraphEdgeData* edges,
                     size_t* count) {
  tell_nodes(nodes, out, count);
  if (out != nullptr && edges != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
}

const char* name_of(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "graph";
    case cudaGraphNodeTypeWaitEvent: return "event wait";
    case cudaGraphNodeTypeEventRecord: return "event record";
    case cudaGraphNodeTypeMemAlloc: return "memory allocation";
    case cudaGraphNodeTypeMemFree: return "memory free";
    case cudaGraphNodeTypeConditional: return "conditional";
    default: return "empty";
  }
}

/// Calls apply() for all edges of a list. If a call fails, calls revert() for the edges before it.
template <class Do, class Undo>
void for_edges(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
               const cudaGraphEdgeData* edges, size_t count, const Do& apply, const Undo& revert) {
  graph& it = graph_of(handle);
  require_plain_edges(edges, count);
  const auto sources = nodes_of(from, count);
  const auto targets = nodes_of(to, count);
  std::size_t done = 0;
  try {
    for (; done < count; ++done) apply(it, *sources[done], *targets[done]);
  } catch (const failure&) {
    while (done-- > 0) revert(it, *sources[done], *targets[done]);
    throw;
  }
}

void connect(graph& it, graph_node& from, graph_node& to) { it.connect(from, to); }
void disconnect(graph& it, graph_node& from, graph_node& to) { it.disconnect(from, to); }

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t* made, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr && flags == 0, cudaErrorInvalidValue);
    *made = process().graphs().create();
  });
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t handle) {
  return api_call(__func__, [&] { process().graphs().destroy(handle); });
}

cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t* made, cudaGraph_t original) {
  return api_call(__func__, [&] {
    require(made != nullptr, cudaErrorInvalidValue);
    *made = process().graphs().adopt(clone_of(graph_of(original)));
  });
}

cudaError_t CUDARTAPI cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  return api_call(__func__, [&] {
    require(found != nullptr, cudaErrorInvalidValue);
    const auto& nodes = graph_of(clone).nodes();
    const auto copy = std::find_if(nodes.begin(), nodes.end(),
                                   [id = node_of(original).id()](const auto& each) { return each->origin() == id; });
    require(copy != nodes.end(), cudaErrorInvalidValue);
    *found = handle_of(**copy);
  });
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return api_call(__func__, [&] {
    require(type != nullptr, cudaErrorInvalidValue);
    *type = node_of(node).type();
  });
}

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return api_call(__func__, [&] { tell_nodes(all_nodes(graph_of(handle), false), nodes, count); });
}

cudaError_t CUDARTAPI cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return api_call(__func__, [&] { tell_nodes(all_nodes(graph_of(handle), true), nodes, count); });
}

cudaError_t CUDARTAPI cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                        cudaGraphEdgeData* edges, size_t* count) {
  return api_call(__func__, [&] {
    require(count != nullptr && (from == nullptr) == (to == nullptr), cudaErrorInvalidValue);
    std::vector<graph_node*> sources;
    std::vector<graph_node*> targets;
    for (const auto& each : graph_of(handle).nodes()) {
      sources.insert(sources.end(), each->before().begin(), each->before().end());
      targets.resize(sources.size(), each.get());
    }
    size_t same = *count;
    tell_neighbours(sources, from, edges, count);
    if (to != nullptr) tell_nodes(targets, to, &same);
  });
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                   cudaGraphEdgeData* edges, size_t* count) {
  return api_call(__func__, [&] { tell_neighbours(node_of(node).before(), nodes, edges, count); });
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                     cudaGraphEdgeData* edges, size_t* count) {
  return api_call(__func__, [&] { tell_neighbours(node_of(node).after(), nodes, edges, count); });
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                               size_t count) {
  return api_call(__func__, [&] { for_edges(handle, from, to, edges, count, connect, disconnect); });
}

cudaError_t CUDARTAPI cudaGraphRemoveDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                                  const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                                  size_t count) {
  return api_call(__func__, [&] { for_edges(handle, from, to, edges, count, disconnect, connect); });
}

cudaError_t CUDARTAPI cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return api_call(__func__, [&] {
    graph_node& node = node_of(handle);
    node.owner().remove(node);
  });
}

cudaError_t CUDARTAPI cudaGraphDebugDotPrint(cudaGraph_t handle, const char* path, unsigned /*flags*/) {
  return api_call(__func__, [&] {
    require(path != nullptr, cudaErrorInvalidValue);
    std::ofstream out(path);
    require(out.is_open(), cudaErrorOperatingSystem);
    out << "digraph hpe {\n";
    for (const auto& each : graph_of(handle).nodes()) {
      out << "  n" << each->id() << " [label=\"" << name_of(each->type()) << "\"];\n";
      for (const graph_node* const before : each->before()) {
        out << "  n" << before->id() << " -> n" << each->id() << ";\n";
      }
    }
    out << "}\n";
  });
}
}
