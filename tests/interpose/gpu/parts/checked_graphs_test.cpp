// The places of the nodes of a checked program's graphs: the driver may give the handle of a destroyed node to another
// node, and programs make and destroy graphs as long as they run.
#include "interpose/gpu/check/checked_graphs.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interpose/gpu/hooks/memory_kind.h"
#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using namespace hpe::cuda_hooks;
using place_ptr = std::shared_ptr<const hpe::check::call_place>;

place_ptr place(const char* call) {
  hpe::check::call_place made;
  made.call = call;
  return std::make_shared<const hpe::check::call_place>(std::move(made));
}

class CheckedGraphs : public testing::Test {
 protected:
  CheckedGraphs() {
    stand_in::enter_device_0();
    EXPECT_EQ(cuMemAlloc(&memory_, 4096), CUDA_SUCCESS);
    driver_.emplace();
    kernels_.emplace(*driver_);
    graphs_.emplace(*driver_, *kernels_);
  }
  ~CheckedGraphs() override { cuMemFree(memory_); }

  static CUgraph graph() {
    CUgraph made = nullptr;
    EXPECT_EQ(cuGraphCreate(&made, 0), CUDA_SUCCESS);
    return made;
  }
  CUgraphNode add_fill(CUgraph to) const {
    CUgraphNode made = nullptr;
    CUDA_MEMSET_NODE_PARAMS what{};
    what.dst = memory_;
    what.elementSize = 4;
    what.width = 8;
    what.height = 1;
    EXPECT_EQ(cuGraphAddMemsetNode(&made, to, nullptr, 0, &what, nullptr), CUDA_SUCCESS);
    return made;
  }
  /// Returns the calls by which the program has added the nodes that a launch of the graph runs.
  std::vector<std::string> calls(CUgraph of) {
    CUgraphExec const instance = reinterpret_cast<CUgraphExec>(&driver_);
    graphs_->step({instance_step::kind::made, instance, of}, place("instantiate"));
    std::vector<std::string> result;
    for (const launch_accesses& each : graphs_->find(instance)->steps) result.push_back(each.what->place->call);
    return result;
  }

  CUdeviceptr memory_ = 0;
  std::optional<hpe::device::cuda::driver> driver_;
  std::optional<analysed_kernels> kernels_;
  std::optional<checked_graphs> graphs_;
};

TEST_F(CheckedGraphs, ForgetTheNodesOfADestroyedGraph) {
  CUgraph const kept = graph(), ended = graph();
  graphs_->added(add_fill(kept), place("kept"));
  graphs_->added(add_fill(ended), place("ended"));
  EXPECT_EQ(calls(ended), std::vector<std::string>{"ended"});
  graphs_->ends(ended);
  EXPECT_EQ(calls(ended), std::vector<std::string>{"instantiate"});  // as for another graph with these handles
  EXPECT_EQ(calls(kept), std::vector<std::string>{"kept"});
  cuGraphDestroy(kept);
  cuGraphDestroy(ended);
}

// The driver copies the nodes of a child graph, and the program may destroy the graph afterwards.
TEST_F(CheckedGraphs, KnowAndForgetTheNodesOfChildGraphs) {
  CUgraph const parent = graph(), child = graph(), inner = graph();
  graphs_->added(add_fill(inner), place("innermost"));
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphAddChildGraphNode(&node, child, nullptr, 0, inner), CUDA_SUCCESS);
  graphs_->added(node, place("inner"), inner);
  graphs_->added(add_fill(child), place("in child"));
  ASSERT_EQ(cuGraphAddChildGraphNode(&node, parent, nullptr, 0, child), CUDA_SUCCESS);
  graphs_->added(node, place("child"), child);
  CUgraphNode const other = add_fill(parent);
  graphs_->added(other, place("other"));
  for (CUgraph const each : {inner, child}) {
    graphs_->ends(each);
    cuGraphDestroy(each);
  }
  EXPECT_EQ(calls(parent), (std::vector<std::string>{"innermost", "in child", "other"}));
  graphs_->ends(other);
  EXPECT_EQ(calls(parent), (std::vector<std::string>{"innermost", "in child", "instantiate"}));
  graphs_->ends(parent);
  EXPECT_EQ(calls(parent), (std::vector<std::string>{"instantiate", "instantiate", "instantiate"}));
  cuGraphDestroy(parent);
}

/// Counts what ends while it has its nodes.
class watched_graphs final : public memory_kind {
 public:
  void ends(CUgraph graph) override {
    std::size_t count = 0;
    EXPECT_EQ(cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
    nodes_of_ended += count;
  }
  void ends(CUgraphNode node) override { ended_nodes.push_back(node); }

  std::size_t nodes_of_ended = 0;
  std::vector<CUgraphNode> ended_nodes;
};

TEST_F(CheckedGraphs, AreToldOfGraphsAndNodesBeforeTheyEnd) {
  static auto* const watched = new watched_graphs;
  memory_kinds::add_observer(*watched);
  CUgraph const its = graph();
  for (int n = 0; n < 3; ++n) add_fill(its);
  CUgraphNode const node = add_fill(its);
  EXPECT_EQ(cuGraphDestroyNode(node), CUDA_SUCCESS);
  EXPECT_EQ(watched->ended_nodes, std::vector<CUgraphNode>{node});
  EXPECT_EQ(cuGraphDestroy(its), CUDA_SUCCESS);
  EXPECT_EQ(watched->nodes_of_ended, 3U);
}

}  // namespace
