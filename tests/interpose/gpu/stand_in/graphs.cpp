// A graph is a list of nodes, which run in the order in which they were added. Like the driver, the stand-in inspects
// the memory of copies and fills when their nodes are added and when the graph is instantiated. Tests may also use any
// other address as the handle of a graph or instance. A launch of such an instance only frees memory.
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tests/interpose/gpu/stand_in/machine.h"

using namespace stand_in;  // NOLINT(google-build-using-namespace): this file is part of that namespace

namespace {

struct graph;

struct node {
  std::vector<CUgraphNode> after;  // the nodes for which it waits
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::vector<std::byte>> values;  // the values of the kernel's parameters
  std::vector<void*> places;
  std::vector<std::shared_ptr<node>> child;
  std::vector<std::function<void()>> captured;
};

struct graph {
  std::vector<std::shared_ptr<node>> nodes;
};
// An instance has copies of the nodes; each copy is stored with the handle of its original.
struct instance {
  std::vector<std::pair<CUgraphNode, std::shared_ptr<node>>> nodes;
};

std::mutex state;
template <class T>
T& immortal() {
  static auto* const it = new T;
  return *it;
}
std::map<CUgraph, std::unique_ptr<graph>>& graphs() { return immortal<std::map<CUgraph, std::unique_ptr<graph>>>(); }
std::map<CUgraphExec, std::unique_ptr<instance>>& instances() {
  return immortal<std::map<CUgraphExec, std::unique_ptr<instance>>>();
}
std::multimap<const void*, CUdeviceptr>& frees_of_graphs() {
  return immortal<std::multimap<const void*, CUdeviceptr>>();
}

CUgraphNode handle_of(const std::shared_ptr<node>& n) { return reinterpret_cast<CUgraphNode>(n.get()); }
node& node_of(CUgraphNode n) { return *reinterpret_cast<node*>(n); }

bool is_there(const node& n) {
  const CUDA_MEMCPY3D& c = n.copy;
  if (n.type == CU_GRAPH_NODE_TYPE_MEMSET) return is_device(n.fill.dst, 1);
  return n.type != CU_GRAPH_NODE_TYPE_MEMCPY ||
         ((c.srcMemoryType != CU_MEMORYTYPE_DEVICE || is_device(c.srcDevice, 1)) &&
          (c.dstMemoryType != CU_MEMORYTYPE_DEVICE || is_device(c.dstDevice, 1)));
}

std::shared_ptr<node> node_with(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  auto made = std::make_shared<node>();
  made->type = CU_GRAPH_NODE_TYPE_KERNEL;
  made->kernel = kernel;
  std::size_t bytes = 0, offset = 0;
  for (std::size_t n = 0; cuFuncGetParamInfo(kernel.func, n, &offset, &bytes) == CUDA_SUCCESS; ++n) {
    const auto* const from = static_cast<const std::byte*>(kernel.kernelParams[n]);
    made->values.emplace_back(from, from + bytes);
  }
  for (auto& value : made->values) made->places.push_back(value.data());
  made->kernel.kernelParams = made->places.data();
  return made;
}

// Returns copies of the nodes, which wait for each other as the nodes do.
std::vector<std::shared_ptr<node>> copies_of(const std::vector<std::shared_ptr<node>>& nodes) {
  std::vector<std::shared_ptr<node>> result;
  std::map<CUgraphNode, CUgraphNode> copy_of;
  for (const auto& each : nodes) {
    auto made = std::make_shared<node>(*each);
    for (std::size_t n = 0; n < made->values.size(); ++n) made->places[n] = made->values[n].data();
    if (!made->places.empty()) made->kernel.kernelParams = made->places.data();
    made->child = copies_of(each->child);
    copy_of[handle_of(each)] = handle_of(made);
    result.push_back(std::move(made));
  }
  for (const auto& each : result)
    for (CUgraphNode& before : each->after) before = copy_of.at(before);
  return result;
}

CUresult add(CUgraphNode* handle, CUgraph to, std::shared_ptr<node> made, const CUgraphNode* after = nullptr,
             std::size_t count = 0) {
  if (!is_there(*made)) return CUDA_ERROR_INVALID_VALUE;
  made->after.assign(after, after + count);
  const std::lock_guard lock(state);
  const auto found = graphs().find(to);
  if (found == graphs().end()) return CUDA_ERROR_INVALID_VALUE;
  *handle = handle_of(made);
  found->second->nodes.push_back(std::move(made));
  return CUDA_SUCCESS;
}

CUresult replace(CUgraphExec in, CUgraphNode which, std::shared_ptr<node> by) {
  if (!is_there(*by)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state);
  for (auto& [handle, n] : instances().at(in)->nodes)
    if (handle == which) n = by;
  return CUDA_SUCCESS;
}

CUresult run(const node& n, CUstream in) {
  CUresult result = CUDA_SUCCESS;
  stream* s = nullptr;
  if (const CUresult wrong = find(in, s); wrong != CUDA_SUCCESS) return wrong;
  for (const auto& work : n.captured) add(*s, work);
  switch (n.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return result;
    case CU_GRAPH_NODE_TYPE_MEMCPY: return cuMemcpy3DAsync(&n.copy, in);
    case CU_GRAPH_NODE_TYPE_MEMSET: return cuMemsetD32Async(n.fill.dst, n.fill.value, n.fill.width, in);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      for (const auto& each : n.child)
        if (result == CUDA_SUCCESS) result = run(*each, in);
      return result;
    default: {
      const CUDA_KERNEL_NODE_PARAMS& k = n.kernel;
      return cuLaunchKernel(k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ, 0, in,
                            k.kernelParams, nullptr);
    }
  }
}

}  // namespace

STAND_IN CUresult cuGraphCreate(CUgraph* made, unsigned) {
  const std::lock_guard lock(state);
  auto fresh = std::make_unique<graph>();
  *made = reinterpret_cast<CUgraph>(fresh.get());
  graphs()[*made] = std::move(fresh);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph to, const CUgraphNode* after, std::size_t count,
                                       const CUDA_MEMCPY3D* what, CUcontext) {
  COUNT();
  auto fresh = std::make_shared<node>();
  fresh->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  fresh->copy = *what;
  return add(made, to, std::move(fresh), after, count);
}
STAND_IN CUresult cuGraphAddMemsetNode(CUgraphNode* made, CUgraph to, const CUgraphNode* after, std::size_t count,
                                       const CUDA_MEMSET_NODE_PARAMS* what, CUcontext) {
  COUNT();
  auto fresh = std::make_shared<node>();
  fresh->type = CU_GRAPH_NODE_TYPE_MEMSET;
  fresh->fill = *what;
  return add(made, to, std::move(fresh), after, count);
}
STAND_IN CUresult cuGraphAddKernelNode(CUgraphNode* made, CUgraph to, const CUgraphNode* after, std::size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS* what) {
  return COUNT(), add(made, to, node_with(*what), after, count);
}
STAND_IN CUresult cuGraphAddChildGraphNode(CUgraphNode* made, CUgraph to, const CUgraphNode* after, std::size_t count,
                                           CUgraph child) {
  COUNT();
  auto fresh = std::make_shared<node>();
  fresh->type = CU_GRAPH_NODE_TYPE_GRAPH;
  {
    const std::lock_guard lock(state);
    fresh->child = copies_of(graphs().at(child)->nodes);
  }
  return add(made, to, std::move(fresh), after, count);
}
STAND_IN CUresult cuGraphAddMemFreeNode(CUgraphNode*, CUgraph to, const CUgraphNode*, std::size_t,
                                        CUdeviceptr address) {
  COUNT();
  const std::lock_guard lock(state);
  frees_of_graphs().emplace(to, address);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphDestroy(CUgraph which) {
  COUNT();
  const std::lock_guard lock(state);
  return graphs().erase(which) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuGraphDestroyNode(CUgraphNode which) {
  COUNT();
  const std::lock_guard lock(state);
  for (auto& [handle, its] : graphs())
    if (std::erase_if(its->nodes, [&](const auto& n) { return handle_of(n) == which; }) != 0) return CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuGraphGetNodes(CUgraph of, CUgraphNode* nodes, std::size_t* count) {
  const std::lock_guard lock(state);
  const auto found = graphs().find(of);
  if (found == graphs().end()) return CUDA_ERROR_INVALID_VALUE;
  const auto& all = found->second->nodes;
  for (std::size_t n = 0; nodes != nullptr && n < std::min(*count, all.size()); ++n) nodes[n] = handle_of(all[n]);
  return *count = all.size(), CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphGetEdges(CUgraph of, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData*,
                                  std::size_t* count) {
  const std::lock_guard lock(state);
  const auto found = graphs().find(of);
  if (found == graphs().end()) return CUDA_ERROR_INVALID_VALUE;
  std::size_t n = 0;
  for (const auto& each : found->second->nodes)
    for (const CUgraphNode before : each->after) {
      if (from != nullptr && n < *count) from[n] = before, to[n] = handle_of(each);
      ++n;
    }
  return *count = n, CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType* type) {
  return *type = node_of(n).type, CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D* what) {
  return *what = node_of(n).copy, CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS* what) {
  return *what = node_of(n).fill, CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS* what) {
  return *what = node_of(n).kernel, CUDA_SUCCESS;
}
// Returns a new graph with the nodes of the child graph.
STAND_IN CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph* child) {
  auto fresh = std::make_unique<graph>();
  fresh->nodes = node_of(n).child;
  const std::lock_guard lock(state);
  *child = reinterpret_cast<CUgraph>(fresh.get());
  graphs()[*child] = std::move(fresh);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph of, unsigned long long) {
  COUNT();
  const std::lock_guard lock(state);
  auto fresh = std::make_unique<instance>();
  for (const auto& n : graphs().at(of)->nodes) {
    if (!is_there(*n)) return CUDA_ERROR_INVALID_VALUE;
    fresh->nodes.emplace_back(handle_of(n), n);
  }
  *made = reinterpret_cast<CUgraphExec>(fresh.get());
  instances()[*made] = std::move(fresh);
  return CUDA_SUCCESS;
}
STAND_IN CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec in, CUgraphNode n, const CUDA_MEMCPY3D* what, CUcontext) {
  COUNT();
  auto fresh = std::make_shared<node>();
  fresh->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  fresh->copy = *what;
  return replace(in, n, std::move(fresh));
}
STAND_IN CUresult cuGraphExecKernelNodeSetParams(CUgraphExec in, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS* what) {
  return COUNT(), replace(in, n, node_with(*what));
}
STAND_IN CUresult cuGraphExecDestroy(CUgraphExec which) {
  COUNT();
  const std::lock_guard lock(state);
  return instances().erase(which) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuGraphLaunch(CUgraphExec which, CUstream in) {
  COUNT();
  std::vector<std::shared_ptr<node>> nodes;
  std::vector<CUdeviceptr> freed;
  {
    const std::lock_guard lock(state);
    if (const auto found = instances().find(which); found != instances().end())
      for (const auto& [handle, n] : found->second->nodes) nodes.push_back(n);
    for (auto [at, end] = frees_of_graphs().equal_range(which); at != end; ++at) freed.push_back(at->second);
    frees_of_graphs().erase(which);
  }
  for (const auto& n : nodes)
    if (const CUresult wrong = run(*n, in); wrong != CUDA_SUCCESS) return wrong;
  for (const CUdeviceptr each : freed)
    if (const CUresult wrong = cuMemFree(each); wrong != CUDA_SUCCESS) return wrong;
  return CUDA_SUCCESS;
}

// A capture of mode relaxed is recorded as one node, of a type whose memory hpe does not know. For other modes, the
// stand-in imitates only the status of the capture (active, invalidated, ended): captured work runs at once, and the
// graph is null.
STAND_IN CUresult cuStreamBeginCapture(CUstream given, CUstreamCaptureMode mode) {
  stream* s = nullptr;
  const CUresult result = find(given, s);
  if (result != CUDA_SUCCESS) return result;
  s->records = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
  s->captures_from = std::this_thread::get_id();
  s->capture = capture_state::active;
  return result;
}
STAND_IN CUresult cuStreamEndCapture(CUstream given, CUgraph* made) {
  stream* s = nullptr;
  if (const CUresult wrong = find(given, s); wrong != CUDA_SUCCESS) return wrong;
  *made = nullptr;
  if (s->capture != capture_state::none && !s->records && s->captures_from != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool is_whole = s->capture.exchange(capture_state::none) == capture_state::active;
  auto fresh = std::make_shared<node>();
  fresh->captured = std::exchange(s->recorded, {});
  fresh->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if (!is_whole) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!std::exchange(s->records, false)) return CUDA_SUCCESS;
  cuGraphCreate(made, 0);
  CUgraphNode handle = nullptr;
  return add(&handle, *made, std::move(fresh));
}
