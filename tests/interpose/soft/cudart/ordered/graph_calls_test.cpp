#include <cstdio>
#include <fstream>
#include <string>

#include "common.h"

namespace {

constexpr int count = 300;

class GraphCalls : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CUDA(cudaGraphCreate(&graph_, 0));
    to_device(values_.data(), std::vector<int>(count, 1));
  }
  void TearDown() override { EXPECT_CUDA(cudaGraphDestroy(graph_)); }

  cudaKernelNodeParams adding(int what) {
    what_ = what;
    arguments_[0] = &pointer_;
    arguments_[1] = &count_;
    arguments_[2] = &what_;
    cudaKernelNodeParams result{};
    result.func = const_cast<void*>(kernel_add_to());
    result.gridDim = {3, 1, 1};
    result.blockDim = {128, 1, 1};
    result.kernelParams = arguments_;
    return result;
  }

  cudaGraphNode_t add(int what, const std::vector<cudaGraphNode_t>& after = {}) {
    cudaGraphNode_t node = nullptr;
    const auto parameters = adding(what);
    EXPECT_CUDA(cudaGraphAddKernelNode(&node, graph_, after.data(), after.size(), &parameters));
    return node;
  }

  cudaGraphNode_t add_double(const std::vector<cudaGraphNode_t>& after) {
    void* arguments[] = {&pointer_, &count_};
    cudaGraphNodeParams parameters{};
    parameters.type = cudaGraphNodeTypeKernel;
    parameters.kernel.func = const_cast<void*>(kernel_double());
    parameters.kernel.gridDim = {3, 1, 1};
    parameters.kernel.blockDim = {128, 1, 1};
    parameters.kernel.kernelParams = arguments;
    cudaGraphNode_t node = nullptr;
    EXPECT_CUDA(cudaGraphAddNode(&node, graph_, after.data(), nullptr, after.size(), &parameters));
    return node;
  }

  cudaGraphExec_t instantiate() {
    cudaGraphExec_t exec = nullptr;
    EXPECT_CUDA(cudaGraphInstantiate(&exec, graph_, 0));
    return exec;
  }

  int launched(cudaGraphExec_t exec) {
    EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
    EXPECT_CUDA(cudaStreamSynchronize(stream_));
    const auto all = from_device(values_.data(), count);
    EXPECT_EQ(all, std::vector<int>(count, all[0]));
    return all[0];
  }

  own_stream stream_;
  on_device<int> values_{count};
  cudaGraph_t graph_ = nullptr;

 private:
  int* pointer_ = values_.data();
  int count_ = count;
  int what_ = 0;
  void* arguments_[3]{};
};

TEST_F(GraphCalls, NodesHaveTheirOwnCopyOfArguments) {
  cudaGraphNode_t a = add(2);
  cudaGraphNode_t b = add_double({a});
  add(5, {b});
  const cudaGraphExec_t exec = instantiate();
  EXPECT_EQ(launched(exec), 11);
  EXPECT_EQ(launched(exec), 31);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_FAILS(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
}

TEST_F(GraphCalls, ParametersOfKernelsCanBeReadAndChanged) {
  const cudaGraphNode_t node = add(2);
  cudaKernelNodeParams told{};
  ASSERT_CUDA(cudaGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(told.func, kernel_add_to());
  EXPECT_EQ(told.gridDim.x, 3U);
  EXPECT_EQ(*static_cast<int**>(told.kernelParams[0]), values_.data());
  EXPECT_EQ(*static_cast<int*>(told.kernelParams[2]), 2);
  cudaGraphExec_t exec = instantiate();

  auto changed = adding(100);
  ASSERT_CUDA(cudaGraphKernelNodeSetParams(node, &changed));
  EXPECT_EQ(launched(exec), 3);
  cudaGraphExecUpdateResultInfo result{};
  ASSERT_CUDA(cudaGraphExecUpdate(exec, graph_, &result));
  EXPECT_EQ(result.result, cudaGraphExecUpdateSuccess);
  EXPECT_EQ(launched(exec), 103);
  changed = adding(1000);
  ASSERT_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &changed));
  EXPECT_EQ(launched(exec), 1103);
  unsigned enabled = 0;
  ASSERT_CUDA(cudaGraphNodeSetEnabled(exec, node, 0));
  ASSERT_CUDA(cudaGraphNodeGetEnabled(exec, node, &enabled));
  EXPECT_EQ(enabled, 0U);
  EXPECT_EQ(launched(exec), 1103);
  add(1);
  EXPECT_FAILS(cudaGraphExecUpdate(exec, graph_, &result), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(result.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphCalls, LaunchesThatCannotBeAreRefusedWhenTheNodeIsMade) {
  cudaGraphNode_t node = nullptr;
  auto wrong = adding(1);
  wrong.blockDim = {2000, 1, 1};
  EXPECT_NE(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &wrong), cudaSuccess);
  wrong = adding(1);
  int nothing = 0;
  wrong.func = &nothing;
  EXPECT_FAILS(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &wrong), cudaErrorInvalidDeviceFunction);
  EXPECT_FAILS(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, nullptr), cudaErrorInvalidValue);
  std::size_t nodes = 1;
  EXPECT_CUDA(cudaGraphGetNodes(graph_, nullptr, &nodes));
  EXPECT_EQ(nodes, 0U);
}

TEST_F(GraphCalls, CopiesMemsetsAndHostFunctionsAreNodes) {
  std::vector<int> in(count, 8);
  std::vector<int> out(count, -1);
  int calls = 0;
  cudaGraphNode_t copy = nullptr;
  cudaGraphNode_t set = nullptr;
  cudaGraphNode_t back = nullptr;
  cudaGraphNode_t host = nullptr;
  cudaMemsetParams zeros{values_.data(), 0, 0, 4, count / 2, 1};
  const cudaHostNodeParams function{[](void* data) { ++*static_cast<int*>(data); }, &calls};
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copy, graph_, nullptr, 0, values_.data(), in.data(), count * sizeof(int),
                                       cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaGraphAddMemsetNode(&set, graph_, &copy, 1, &zeros));
  cudaGraphNode_t kernel = add(1, {set});
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&back, graph_, &kernel, 1, out.data(), values_.data(), count * sizeof(int),
                                       cudaMemcpyDeviceToHost));
  ASSERT_CUDA(cudaGraphAddHostNode(&host, graph_, &back, 1, &function));
  const cudaGraphExec_t exec = instantiate();
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  for (int i = 0; i < count; ++i) ASSERT_EQ(out[i], i < count / 2 ? 1 : 9);
  EXPECT_EQ(calls, 1);

  cudaMemcpy3DParms copied{};
  ASSERT_CUDA(cudaGraphMemcpyNodeGetParams(copy, &copied));
  EXPECT_EQ(copied.srcPtr.ptr, in.data());
  EXPECT_EQ(copied.extent.width, count * sizeof(int));
  cudaMemsetParams told{};
  ASSERT_CUDA(cudaGraphMemsetNodeGetParams(set, &told));
  EXPECT_EQ(told.width, std::size_t{count / 2});
  cudaHostNodeParams function_told{};
  ASSERT_CUDA(cudaGraphHostNodeGetParams(host, &function_told));
  EXPECT_EQ(function_told.userData, &calls);
  EXPECT_FAILS(cudaGraphMemsetNodeGetParams(host, &told), cudaErrorInvalidValue);

  zeros.value = 0x01010101;
  zeros.width = count;
  ASSERT_CUDA(cudaGraphExecMemsetNodeSetParams(exec, set, &zeros));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(out, std::vector<int>(count, 0x01010102));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphCalls, StructureCanBeReadAndChanged) {
  cudaGraphNode_t a = add(1);
  cudaGraphNode_t b = add(2, {a});
  cudaGraphNode_t c = nullptr;
  ASSERT_CUDA(cudaGraphAddEmptyNode(&c, graph_, &a, 1));
  std::size_t number = 0;
  ASSERT_CUDA(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &number));
  ASSERT_EQ(number, 2U);
  cudaGraphNode_t from[4]{};
  cudaGraphNode_t to[4]{};
  number = 4;
  ASSERT_CUDA(cudaGraphGetEdges(graph_, from, to, nullptr, &number));
  EXPECT_EQ(number, 2U);
  EXPECT_EQ(from[0], a);
  EXPECT_EQ(to[0], b);
  EXPECT_EQ(to[1], c);
  EXPECT_EQ(to[2], nullptr);
  number = 1;
  ASSERT_CUDA(cudaGraphGetRootNodes(graph_, from, &number));
  EXPECT_EQ(number, 1U);
  EXPECT_EQ(from[0], a);
  ASSERT_CUDA(cudaGraphNodeGetDependentNodes(a, nullptr, nullptr, &number));
  EXPECT_EQ(number, 2U);
  ASSERT_CUDA(cudaGraphNodeGetDependencies(b, nullptr, nullptr, &number));
  EXPECT_EQ(number, 1U);

  EXPECT_FAILS(cudaGraphAddDependencies(graph_, &a, &b, nullptr, 1), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaGraphAddDependencies(graph_, &b, &c, nullptr, 1));
  ASSERT_CUDA(cudaGraphRemoveDependencies(graph_, &a, &c, nullptr, 1));
  ASSERT_CUDA(cudaGraphAddDependencies(graph_, &c, &a, nullptr, 1));
  cudaGraphExec_t exec = nullptr;
  EXPECT_FAILS(cudaGraphInstantiate(&exec, graph_, 0), cudaErrorInvalidValue);  // the graph has a cycle
  ASSERT_CUDA(cudaGraphDestroyNode(c));
  EXPECT_FAILS(cudaGraphDestroyNode(c), cudaErrorInvalidValue);
  exec = instantiate();
  EXPECT_EQ(launched(exec), 4);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));

  const std::string path = testing::TempDir() + "hpe-graph.dot";
  ASSERT_CUDA(cudaGraphDebugDotPrint(graph_, path.c_str(), 0));
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text.rfind("digraph", 0), 0U);
  std::remove(path.c_str());
}

TEST_F(GraphCalls, ClonesAndChildrenAreCopies) {
  cudaGraphNode_t a = add(1);
  cudaGraph_t clone = nullptr;
  ASSERT_CUDA(cudaGraphClone(&clone, graph_));
  cudaGraphNode_t same = nullptr;
  ASSERT_CUDA(cudaGraphNodeFindInClone(&same, a, clone));
  EXPECT_NE(same, a);
  EXPECT_FAILS(cudaGraphNodeFindInClone(&same, a, graph_), cudaErrorInvalidValue);
  cudaGraphNode_t child = nullptr;
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&child, graph_, &a, 1, clone));
  const auto changed = adding(1000);
  ASSERT_CUDA(cudaGraphKernelNodeSetParams(same, &changed));  // has no effect on the child graph, which is a copy
  ASSERT_CUDA(cudaGraphDestroy(clone));
  cudaGraph_t inside = nullptr;
  ASSERT_CUDA(cudaGraphChildGraphNodeGetGraph(child, &inside));
  std::size_t number = 1;
  cudaGraphNode_t inner = nullptr;
  ASSERT_CUDA(cudaGraphGetNodes(inside, &inner, &number));
  const cudaGraphExec_t exec = instantiate();
  EXPECT_EQ(launched(exec), 3);
  const auto more = adding(10);
  ASSERT_CUDA(cudaGraphExecKernelNodeSetParams(exec, inner, &more));
  EXPECT_EQ(launched(exec), 14);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphCalls, MemoryNodesGiveMemory) {
  cudaMemAllocNodeParams wanted{};
  wanted.poolProps.allocType = cudaMemAllocationTypePinned;
  wanted.poolProps.location = {cudaMemLocationTypeDevice, 0};
  wanted.bytesize = count * sizeof(int);
  cudaGraphNode_t allocated = nullptr;
  cudaGraphNode_t copied = nullptr;
  cudaGraphNode_t back = nullptr;
  cudaGraphNode_t freed = nullptr;
  ASSERT_CUDA(cudaGraphAddMemAllocNode(&allocated, graph_, nullptr, 0, &wanted));
  ASSERT_NE(wanted.dptr, nullptr);
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&copied, graph_, &allocated, 1, wanted.dptr, values_.data(), wanted.bytesize,
                                       cudaMemcpyDefault));
  cudaGraphNode_t more = add(6, {copied});
  ASSERT_CUDA(cudaGraphAddMemcpyNode1D(&back, graph_, &more, 1, values_.data(), wanted.dptr, wanted.bytesize,
                                       cudaMemcpyDefault));
  ASSERT_CUDA(cudaGraphAddMemFreeNode(&freed, graph_, &back, 1, wanted.dptr));
  void* told = nullptr;
  ASSERT_CUDA(cudaGraphMemFreeNodeGetParams(freed, &told));
  EXPECT_EQ(told, wanted.dptr);
  EXPECT_FAILS(cudaGraphAddMemFreeNode(&freed, graph_, nullptr, 0, values_.data()), cudaErrorInvalidValue);
  const cudaGraphExec_t exec = instantiate();
  EXPECT_EQ(launched(exec), 1);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphCalls, UserObjectsLiveAsLongAsTheGraphsThatKeepThem) {
  int ended = 0;
  cudaUserObject_t object = nullptr;
  const cudaHostFn_t end = [](void* data) { ++*static_cast<int*>(data); };
  EXPECT_FAILS(cudaUserObjectCreate(&object, &ended, end, 1, 0), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaUserObjectCreate(&object, &ended, end, 1, cudaUserObjectNoDestructorSync));
  ASSERT_CUDA(cudaUserObjectRetain(object, 1));
  EXPECT_FAILS(cudaUserObjectRelease(object, 3), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaGraphRetainUserObject(graph_, object, 1, cudaGraphUserObjectMove));
  ASSERT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_FAILS(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);  // the last reference belongs to the graph
  EXPECT_EQ(ended, 0);
  const cudaGraphExec_t exec = instantiate();
  EXPECT_FAILS(cudaGraphReleaseUserObject(graph_, object, 2), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaGraphReleaseUserObject(graph_, object, 1));
  EXPECT_EQ(ended, 0);
  host_gate gate;
  ASSERT_CUDA(gate.put(stream_));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_EQ(ended, 0);
  gate.open();
  ASSERT_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(ended, 1);
}

// tests/interpose/programs/conditional.cu tests which bodies conditional nodes run; its expected output was recorded on
// a GPU.
TEST(Conditional, WrongOnesAreRefused) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphConditionalHandle handle = 0;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  EXPECT_FAILS(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphConditionalHandleCreate(&handle, nullptr, 0, 0), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = cudaGraphCondTypeWhile;
  parameters.conditional.size = 2;
  EXPECT_FAILS(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
  parameters.conditional.handle = handle + 4;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  EXPECT_FAILS(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
  parameters.conditional.handle = handle;
  ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
  const cudaGraph_t body = parameters.conditional.phGraph_out[0];
  // Only one node may use a handle.
  EXPECT_FAILS(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphDestroy(body), cudaErrorInvalidValue);  // the node owns it

  const cudaHostNodeParams host{[](void*) {}, nullptr};
  ASSERT_CUDA(cudaGraphAddHostNode(&node, body, nullptr, 0, &host));
  EXPECT_FAILS(cudaGraphInstantiate(&exec, graph, 0), cudaErrorNotSupported);
  EXPECT_CUDA(cudaGraphDestroyNode(node));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(Conditional, NodesOfItsGraphsChangeInAnExecutableGraph) {
  const on_device<unsigned char> bytes(8);
  ASSERT_CUDA(cudaMemset(bytes.data(), 0, 8));
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphNode_t set = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  ASSERT_CUDA(cudaGraphConditionalHandleCreate(&parameters.conditional.handle, graph, 1, cudaGraphCondAssignDefault));
  ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
  cudaMemsetParams fill{bytes.data(), 8, 7, 1, 4, 1};
  ASSERT_CUDA(cudaGraphAddMemsetNode(&set, parameters.conditional.phGraph_out[0], nullptr, 0, &fill));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(from_device(bytes.data(), 8), (std::vector<unsigned char>{7, 7, 7, 7, 0, 0, 0, 0}));
  fill.width = 6;
  fill.value = 9;
  ASSERT_CUDA(cudaGraphExecMemsetNodeSetParams(exec, set, &fill));
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(from_device(bytes.data(), 8), (std::vector<unsigned char>{9, 9, 9, 9, 9, 9, 0, 0}));

  // The executable graph can be updated from the changed graph, too.
  fill.value = 5;
  ASSERT_CUDA(cudaGraphMemsetNodeSetParams(set, &fill));
  cudaGraphExecUpdateResultInfo told{};
  ASSERT_CUDA(cudaGraphExecUpdate(exec, graph, &told));
  EXPECT_EQ(told.result, cudaGraphExecUpdateSuccess);
  ASSERT_CUDA(cudaGraphLaunch(exec, nullptr));
  EXPECT_EQ(from_device(bytes.data(), 8), (std::vector<unsigned char>{5, 5, 5, 5, 5, 5, 0, 0}));
  ASSERT_CUDA(cudaGraphAddEmptyNode(&node, parameters.conditional.phGraph_out[0], nullptr, 0));
  EXPECT_FAILS(cudaGraphExecUpdate(exec, graph, &told), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(told.result, cudaGraphExecUpdateErrorTopologyChanged);
  ASSERT_CUDA(cudaGraphExecDestroy(exec));
  ASSERT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
