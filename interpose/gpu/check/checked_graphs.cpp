#include "interpose/gpu/check/checked_graphs.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "interpose/gpu/check/program_allocations.h"
#include "interpose/gpu/work/graph_nodes.h"
#include "interpose/shape/described_copy.h"

namespace hpe::cuda_hooks {

namespace {

using place_ptr = std::shared_ptr<const check::call_place>;

// Returns the graph of a node that is a child graph; otherwise null.
CUgraph child_of(const device::cuda::driver& cu, CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUgraph child = nullptr;
  const bool is_one = asked(cu.cuGraphNodeGetType, node, &type) && type == CU_GRAPH_NODE_TYPE_GRAPH &&
                      asked(cu.cuGraphChildGraphNodeGetGraph, node, &child);
  return is_one ? child : nullptr;
}

// Whether two nodes have the same type and, if they are kernels, the same function and grid.
bool are_alike(const device::cuda::driver& cu, CUgraphNode a, CUgraphNode b) {
  CUgraphNodeType types[2]{};
  if (!asked(cu.cuGraphNodeGetType, a, &types[0]) || !asked(cu.cuGraphNodeGetType, b, &types[1])) return false;
  if (types[0] != types[1] || types[0] != CU_GRAPH_NODE_TYPE_KERNEL) return types[0] == types[1];
  CUDA_KERNEL_NODE_PARAMS one{}, other{};
  return asked(cu.cuGraphKernelNodeGetParams, a, &one) && asked(cu.cuGraphKernelNodeGetParams, b, &other) &&
         one.func == other.func && one.kern == other.kern && one.gridDimX == other.gridDimX &&
         one.gridDimY == other.gridDimY && one.gridDimZ == other.gridDimZ;
}

launch_accesses operation_of(const char* name, const place_ptr& place) {
  launch_accesses result;
  result.what = std::make_shared<const check::checked_operation>(check::checked_operation{name, place});
  return result;
}

void add(launch_accesses& to, std::vector<check::access_range> more) {
  to.certain.insert(to.certain.end(), more.begin(), more.end());
}

}  // namespace

/// Reads the nodes of a graph and of its child graphs.
class checked_graphs::reader {
 public:
  explicit reader(const checked_graphs& of) : of_(of), cu_(of.cu_), kernels_(of.kernels_) {}

  std::shared_ptr<const checked_graph> read(CUgraph graph, const place_ptr& place) {
    static_cast<void>(add_graph(graph, place));
    return sorted();
  }

 private:
  using step_list = std::vector<std::size_t>;

  // Returns the steps of the graph.
  step_list add_graph(CUgraph graph, const place_ptr& place) {
    const auto known = nodes_of(cu_, graph);
    if (!known) {
      made_.is_whole = false;
      return {};
    }
    const std::vector<CUgraphNode>& nodes = *known;
    std::map<CUgraphNode, step_list> steps;
    step_list all;
    for (const CUgraphNode node : nodes) {
      steps[node] = add_node(node, place);
      all.insert(all.end(), steps[node].begin(), steps[node].end());
    }
    // The order between the steps of different nodes: paths of edges.
    std::map<CUgraphNode, std::vector<CUgraphNode>> next;
    if (!read_edges(graph, next)) {
      for (std::size_t n = 0; n + 1 < nodes.size(); ++n) next[nodes[n]].push_back(nodes[n + 1]);
    }
    for (const CUgraphNode node : nodes) {
      std::vector<CUgraphNode> pending = next[node];
      std::map<CUgraphNode, bool> seen;
      while (!pending.empty()) {
        const CUgraphNode later = pending.back();
        pending.pop_back();
        if (std::exchange(seen[later], true)) continue;
        for (const std::size_t a : steps[node])
          for (const std::size_t b : steps[later]) before_.emplace_back(a, b);
        pending.insert(pending.end(), next[later].begin(), next[later].end());
      }
    }
    return all;
  }

  // Returns false if the driver does not report the edges.
  bool read_edges(CUgraph graph, std::map<CUgraphNode, std::vector<CUgraphNode>>& next) const {
    std::size_t count = 0;
    if (!asked(cu_.cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count)) return false;
    std::vector<CUgraphNode> from(count), to(count);
    if (count != 0 && !asked(cu_.cuGraphGetEdges, graph, from.data(), to.data(), nullptr, &count)) return false;
    for (std::size_t n = 0; n < count; ++n) next[from[n]].push_back(to[n]);
    return true;
  }

  step_list add_step(launch_accesses what) {
    made_.steps.push_back(std::move(what));
    return {made_.steps.size() - 1};
  }

  step_list add_node(CUgraphNode node, place_ptr place) {
    if (const place_ptr known = of_.place_of(node)) place = known;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    const bool is_known = asked(cu_.cuGraphNodeGetType, node, &type);
    if (is_known && type == CU_GRAPH_NODE_TYPE_EMPTY) return {};
    if (is_known && type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      CUDA_MEMCPY3D copy{};
      if (asked(cu_.cuGraphMemcpyNodeGetParams, node, &copy)) return add_copy(copy, place);
    }
    if (is_known && type == CU_GRAPH_NODE_TYPE_MEMSET) {
      CUDA_MEMSET_NODE_PARAMS fill{};
      if (asked(cu_.cuGraphMemsetNodeGetParams, node, &fill)) {
        launch_accesses what = operation_of("cuMemset", place);
        add(what, accesses_of(fill.dst, box_of(fill), check::use::write));
        return add_step(std::move(what));
      }
    }
    if (is_known && type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CUDA_KERNEL_NODE_PARAMS k{};
      if (asked(cu_.cuGraphKernelNodeGetParams, node, &k)) {
        const program_launch launch{{function_of(k), k.kernelParams, k.extra},
                                    {k.gridDimX, k.gridDimY, k.gridDimZ},
                                    {k.blockDimX, k.blockDimY, k.blockDimZ},
                                    k.sharedMemBytes,
                                    CU_STREAM_LEGACY,
                                    nullptr};
        return add_step(kernels_.describe(launch, place));
      }
    }
    if (CUgraph const child = child_of(cu_, node)) return add_graph(child, place);
    made_.meets_others = true;
    made_.is_whole &= is_known && (type == CU_GRAPH_NODE_TYPE_HOST || type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
                                   type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    return {};
  }

  step_list add_copy(const CUDA_MEMCPY3D& copy, const place_ptr& place) {
    const auto decoded = cuda_shape::decoded(copy);
    launch_accesses what = operation_of("cuMemcpy", place);
    if (!decoded || decoded->extent.is_empty()) return {};
    const box_copy shape = decoded->shape();
    if (!decoded->from.is_array) add(what, accesses_of(decoded->from.first(), shape.read(), check::use::read));
    if (!decoded->to.is_array) add(what, accesses_of(decoded->to.first(), shape.written(), check::use::write));
    return add_step(std::move(what));
  }

  // Sorts the steps so that each comes after those for which it waits.
  std::shared_ptr<const checked_graph> sorted() {
    const std::size_t count = made_.steps.size();
    std::vector<std::size_t> waits(count), order(count), number(count);
    for (const auto& [a, b] : before_) ++waits[b];
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return waits[a] < waits[b]; });
    for (std::size_t n = 0; n < count; ++n) number[order[n]] = n;
    auto result = std::make_shared<checked_graph>();
    for (const std::size_t n : order) result->steps.push_back(std::move(made_.steps[n]));
    auto steps = std::make_shared<check::step_order>();
    steps->before.assign(count, std::vector<bool>(count));
    for (const auto& [a, b] : before_) steps->before[number[b]][number[a]] = true;
    result->order = std::move(steps);
    result->is_whole = made_.is_whole;
    result->meets_others = made_.meets_others;
    return result;
  }

  const checked_graphs& of_;
  const device::cuda::driver& cu_;
  analysed_kernels& kernels_;
  checked_graph made_;
  std::vector<std::pair<std::size_t, std::size_t>> before_;  // pairs of steps
};

void checked_graphs::added(CUgraphNode node, place_ptr place, CUgraph child) {
  if (CUgraph const copy = child != nullptr ? child_of(cu_, node) : nullptr) copy_places(copy, child);
  const lock_guard lock(mutex_);
  places_[node] = std::move(place);
}

// The driver does not report of which node a node is a copy. So hpe pairs the nodes of both graphs in their order, and
// copies no places if the two nodes of a pair differ.
void checked_graphs::copy_places(CUgraph to, CUgraph from) {
  const auto made = nodes_of(cu_, to), of = nodes_of(cu_, from);
  const auto alike = [this](CUgraphNode a, CUgraphNode b) { return are_alike(cu_, a, b); };
  if (!made || !of || !std::ranges::equal(*made, *of, alike)) return;
  for (std::size_t n = 0; n < of->size(); ++n) {
    const CUgraphNode copy = (*made)[n], original = (*of)[n];
    if (const place_ptr its = place_of(original)) added(copy, its, child_of(cu_, original));
  }
}

void checked_graphs::ends(CUgraphNode node) {
  if (CUgraph const child = child_of(cu_, node)) ends(child);
  const lock_guard lock(mutex_);
  places_.erase(node);
}

void checked_graphs::ends(CUgraph graph) {
  for (const CUgraphNode node : nodes_of(cu_, graph).value_or(std::vector<CUgraphNode>())) ends(node);
}

place_ptr checked_graphs::place_of(CUgraphNode node) const {
  const lock_guard lock(mutex_);
  const auto found = places_.find(node);
  return found == places_.end() ? nullptr : found->second;
}

void checked_graphs::captured(CUstream stream, const place_ptr& place) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  if (asked(cu_.cuStreamGetCaptureInfo, stream, &status, nullptr, nullptr, &last, nullptr, &count) && count == 1)
    added(*last, place);
}

void checked_graphs::step(const instance_step& step, const place_ptr& place) {
  std::shared_ptr<const checked_graph> made;
  if (step.what == instance_step::kind::made) made = reader(*this).read(step.graph, place);
  const lock_guard lock(mutex_);
  if (made != nullptr)
    instances_[step.instance] = std::move(made);
  else
    instances_.erase(step.instance);
}

std::shared_ptr<const checked_graph> checked_graphs::find(CUgraphExec instance) const {
  const lock_guard lock(mutex_);
  const auto found = instances_.find(instance);
  return found == instances_.end() ? nullptr : found->second;
}

}  // namespace hpe::cuda_hooks
