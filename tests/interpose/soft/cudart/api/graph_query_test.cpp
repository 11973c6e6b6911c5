// Graphs, executable graphs and captures: what queries return after each change, and which calls are refused.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "graph_fixture.h"

namespace {

using edge = std::pair<cudaGraphNode_t, cudaGraphNode_t>;

std::multiset<edge> edges_of(cudaGraph_t graph) {
  std::size_t number = 99;
  EXPECT_CUDA(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &number));
  std::vector<cudaGraphNode_t> from(number + 2);
  std::vector<cudaGraphNode_t> to(number + 2);
  std::vector<cudaGraphEdgeData> data(number + 2);
  std::memset(data.data(), 0xff, data.size() * sizeof data[0]);
  std::size_t told = number + 2;
  EXPECT_CUDA(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &told));
  EXPECT_EQ(told, number);
  for (std::size_t i = number; i < from.size(); ++i) {
    EXPECT_EQ(from[i], nullptr);
    EXPECT_EQ(to[i], nullptr);
  }
  std::multiset<edge> result;
  for (std::size_t i = 0; i < number; ++i) {
    result.insert({from[i], to[i]});
    EXPECT_EQ(data[i].from_port, 0);
    EXPECT_EQ(data[i].type, 0);
  }
  return result;
}

template <class List>
std::multiset<cudaGraphNode_t> nodes(const List& list) {
  std::size_t number = 99;
  EXPECT_CUDA(list(static_cast<cudaGraphNode_t*>(nullptr), &number));
  std::vector<cudaGraphNode_t> all(number + 1, reinterpret_cast<cudaGraphNode_t>(1));
  std::size_t told = number + 1;
  EXPECT_CUDA(list(all.data(), &told));
  EXPECT_EQ(told, number);
  EXPECT_EQ(all.back(), nullptr);
  if (number > 0) {  // if the list is too short, the query writes only the first nodes
    std::vector<cudaGraphNode_t> some(number, nullptr);
    told = number - 1;
    EXPECT_CUDA(list(some.data(), &told));
    EXPECT_EQ(told, number - 1);
    EXPECT_TRUE(std::equal(some.begin(), some.end() - 1, all.begin()));
    EXPECT_EQ(some.back(), nullptr);
  }
  return {all.begin(), all.end() - 1};
}

TEST_F(GraphQueries, RandomEdgesAreThoseOfAModel) {
  random_bytes random;
  SCOPED_TRACE(random.seed());
  std::vector<cudaGraphNode_t> all;
  std::multiset<edge> expected;
  for (int step = 0; step < 300; ++step) {
    const auto kind = random.below(6);
    if (all.size() < 3 || (kind == 0 && all.size() < 20)) {
      std::vector<cudaGraphNode_t> before;
      for (cudaGraphNode_t const each : all)
        if (random.below(4) == 0) before.push_back(each);
      all.push_back(empty(before));
      for (cudaGraphNode_t const each : before) expected.insert({each, all.back()});
    } else if (kind == 1) {
      const auto at = random.below(all.size());
      EXPECT_CUDA(cudaGraphDestroyNode(all[at]));
      std::erase_if(expected, [&](const edge& e) { return e.first == all[at] || e.second == all[at]; });
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (kind == 2 && !expected.empty()) {
      const edge gone = *std::next(expected.begin(), static_cast<std::ptrdiff_t>(random.below(expected.size())));
      EXPECT_CUDA(cudaGraphRemoveDependencies(graph_, &gone.first, &gone.second, nullptr, 1));
      expected.erase(gone);
    } else {  // edges in the order of creation, which makes no cycle
      const std::size_t number = 1 + random.below(3);
      std::vector<cudaGraphNode_t> from;
      std::vector<cudaGraphNode_t> to;
      std::multiset<edge> after = expected;
      bool twice = false;
      for (std::size_t i = 0; i < number; ++i) {
        const auto first = random.below(all.size() - 1);
        const auto second = first + 1 + random.below(all.size() - first - 1);
        from.push_back(all[first]);
        to.push_back(all[second]);
        twice = twice || after.contains({all[first], all[second]});
        after.insert({all[first], all[second]});
      }
      if (twice) {
        EXPECT_FAILS(cudaGraphAddDependencies(graph_, from.data(), to.data(), nullptr, number), cudaErrorInvalidValue);
      } else {
        EXPECT_CUDA(cudaGraphAddDependencies(graph_, from.data(), to.data(), nullptr, number));
        expected = after;
      }
    }
    ASSERT_EQ(edges_of(graph_), expected);
  }
  EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphGetNodes(graph_, out, n); }),
            std::multiset(all.begin(), all.end()));
  std::multiset<cudaGraphNode_t> roots;
  for (cudaGraphNode_t const each : all) {
    std::multiset<cudaGraphNode_t> before;
    std::multiset<cudaGraphNode_t> after;
    for (const auto& [from, to] : expected) {
      if (to == each) before.insert(from);
      if (from == each) after.insert(to);
    }
    if (before.empty()) roots.insert(each);
    EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphNodeGetDependencies(each, out, nullptr, n); }), before);
    EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphNodeGetDependentNodes(each, out, nullptr, n); }), after);
  }
  EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphGetRootNodes(graph_, out, n); }), roots);
}

TEST_F(GraphQueries, EdgesThatAreNotPlainAreRefused) {
  cudaGraphNode_t const a = empty();
  cudaGraphNode_t const b = empty();
  cudaGraphNode_t const list[] = {a, a};
  cudaGraphNode_t const targets[] = {b, b};
  for (int field = 0; field < 3; ++field) {
    cudaGraphEdgeData data[2]{};
    (field == 0 ? data[1].from_port : field == 1 ? data[1].to_port : data[1].type) = 1;
    EXPECT_FAILS(cudaGraphAddDependencies(graph_, list, targets, data, 2), cudaErrorNotSupported);
    EXPECT_CUDA(cudaGraphAddDependencies(graph_, list, targets, data, 1));  // only the second edge has data
    EXPECT_FAILS(cudaGraphRemoveDependencies(graph_, list, targets, data, 2), cudaErrorNotSupported);
    EXPECT_CUDA(cudaGraphRemoveDependencies(graph_, list, targets, data, 1));
  }
  std::size_t number = 2;
  cudaGraphNode_t out[2];
  EXPECT_FAILS(cudaGraphGetEdges(graph_, out, nullptr, nullptr, &number), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphGetEdges(graph_, nullptr, out, nullptr, &number), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphAddDependencies(graph_, nullptr, targets, nullptr, 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphAddDependencies(graph_, nullptr, nullptr, nullptr, 0));
  // If one of the edges does not exist, the call removes no edge.
  EXPECT_CUDA(cudaGraphAddDependencies(graph_, &a, &b, nullptr, 1));
  cudaGraphNode_t const from[] = {a, b};
  cudaGraphNode_t const to[] = {b, a};
  EXPECT_FAILS(cudaGraphRemoveDependencies(graph_, from, to, nullptr, 2), cudaErrorInvalidValue);
  EXPECT_EQ(edges_of(graph_), (std::multiset<edge>{{a, b}}));
}

TEST_F(GraphQueries, ExecutableGraphsTellTheirFlags) {
  for (const unsigned long long flags : {0ULL, 1ULL, 2ULL, 8ULL, 11ULL}) {
    cudaGraphExec_t made = nullptr;
    ASSERT_CUDA(cudaGraphInstantiateWithFlags(&made, graph_, flags));
    unsigned long long told = 99;
    EXPECT_CUDA(cudaGraphExecGetFlags(made, &told));
    EXPECT_EQ(told, flags);
    EXPECT_CUDA(cudaGraphUpload(made, stream_));
    EXPECT_CUDA(cudaGraphExecDestroy(made));
    EXPECT_FAILS(cudaGraphUpload(made, stream_), cudaErrorInvalidValue);
  }
  cudaGraphExec_t made = nullptr;
  cudaGraphInstantiateParams what{};
  what.flags = cudaGraphInstantiateFlagUseNodePriority;
  what.result_out = cudaGraphInstantiateError;
  what.errNode_out = reinterpret_cast<cudaGraphNode_t>(1);
  ASSERT_CUDA(cudaGraphInstantiateWithParams(&made, graph_, &what));
  EXPECT_EQ(what.result_out, cudaGraphInstantiateSuccess);
  EXPECT_EQ(what.errNode_out, nullptr);
  unsigned long long told = 99;
  EXPECT_CUDA(cudaGraphExecGetFlags(made, &told));
  EXPECT_EQ(told, what.flags);
  EXPECT_CUDA(cudaGraphExecDestroy(made));
  what.flags = 16;
  EXPECT_FAILS(cudaGraphInstantiateWithParams(&made, graph_, &what), cudaErrorInvalidValue);
  EXPECT_EQ(what.result_out, cudaGraphInstantiateError);
  EXPECT_FAILS(cudaGraphInstantiate(&made, graph_, 16), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphInstantiate(&made, graph_, cudaGraphInstantiateFlagDeviceLaunch), cudaErrorNotSupported);
  EXPECT_FAILS(cudaGraphInstantiate(nullptr, graph_, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphInstantiateWithParams(nullptr, graph_, &what), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphInstantiateWithParams(&made, graph_, nullptr), cudaErrorInvalidValue);
  cudaGraphExec_t const exec = instantiate();
  EXPECT_FAILS(cudaGraphExecGetFlags(exec, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  cudaGraph_t graph = nullptr;
  EXPECT_FAILS(cudaGraphCreate(&graph, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphCreate(nullptr, 0), cudaErrorInvalidValue);
}

TEST_F(GraphQueries, UpdatesTellTheNodeThatDiffers) {
  cudaMemsetParams what{};
  what.dst = ints_->data();
  what.elementSize = 4;
  what.width = 1;
  what.height = 1;
  what.value = 1;
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &what));
  cudaGraphExec_t const exec = instantiate();
  what.value = 2;
  ASSERT_CUDA(cudaGraphMemsetNodeSetParams(node, &what));
  cudaGraphExecUpdateResultInfo told{cudaGraphExecUpdateError, reinterpret_cast<cudaGraphNode_t>(1), nullptr};
  EXPECT_CUDA(cudaGraphExecUpdate(exec, graph_, &told));
  EXPECT_EQ(told.result, cudaGraphExecUpdateSuccess);
  EXPECT_EQ(told.errorNode, nullptr);
  run(exec);
  EXPECT_EQ(contents()[0], 2);
  EXPECT_CUDA(cudaGraphExecUpdate(exec, graph_, nullptr));

  cudaGraph_t other = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&other, 0));
  cudaGraphNode_t different = nullptr;
  ASSERT_CUDA(cudaGraphAddEmptyNode(&different, other, nullptr, 0));
  EXPECT_FAILS(cudaGraphExecUpdate(exec, other, &told), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(told.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_EQ(told.errorNode, different);
  EXPECT_FAILS(cudaGraphExecUpdate(exec, other, nullptr), cudaErrorGraphExecUpdateFailure);
  run(exec);
  EXPECT_EQ(contents()[0], 2);
  EXPECT_CUDA(cudaGraphDestroy(other));
  told = {cudaGraphExecUpdateSuccess, reinterpret_cast<cudaGraphNode_t>(1), nullptr};
  EXPECT_FAILS(cudaGraphExecUpdate(exec, nullptr, &told), cudaErrorInvalidValue);
  EXPECT_EQ(told.result, cudaGraphExecUpdateError);
  EXPECT_EQ(told.errorNode, nullptr);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphQueries, ChildGraphsAndClonesAreFound) {
  cudaGraphNode_t const original = empty();
  cudaGraphNode_t const later = empty({original});
  cudaGraph_t clone = nullptr;
  ASSERT_CUDA(cudaGraphClone(&clone, graph_));
  cudaGraphNode_t found = nullptr;
  ASSERT_CUDA(cudaGraphNodeFindInClone(&found, later, clone));
  EXPECT_NE(found, later);
  EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphNodeGetDependencies(found, out, nullptr, n); }).size(), 1U);
  EXPECT_FAILS(cudaGraphNodeFindInClone(nullptr, later, clone), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphNodeFindInClone(&found, empty(), clone), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphClone(nullptr, graph_), cudaErrorInvalidValue);

  int calls = 0;
  cudaHostNodeParams what{[](void* where) { ++*static_cast<int*>(where); }, &calls};
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddHostNode(&node, clone, nullptr, 0, &what));
  cudaGraphNode_t child = nullptr;
  ASSERT_CUDA(cudaGraphAddChildGraphNode(&child, graph_, &later, 1, clone));
  cudaGraph_t inner = nullptr;
  ASSERT_CUDA(cudaGraphChildGraphNodeGetGraph(child, &inner));
  EXPECT_EQ(nodes([&](auto* out, auto* n) { return cudaGraphGetNodes(inner, out, n); }).size(), 3U);
  EXPECT_FAILS(cudaGraphChildGraphNodeGetGraph(child, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphChildGraphNodeGetGraph(later, &inner), cudaErrorInvalidValue);
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(calls, 1);
  cudaHostNodeParams twice{[](void* where) { *static_cast<int*>(where) += 100; }, &calls};
  ASSERT_CUDA(cudaGraphHostNodeSetParams(node, &twice));
  ASSERT_CUDA(cudaGraphExecChildGraphNodeSetParams(exec, child, clone));
  run(exec);
  EXPECT_EQ(calls, 101);

  // A captured launch becomes a node. A drawing of a graph shows the type of each node.
  ASSERT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream_));
  cudaGraph_t captured = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &captured));
  EXPECT_EQ(calls, 101);
  cudaGraphExec_t outer = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&outer, captured, 0));
  run(outer);
  EXPECT_EQ(calls, 201);
  EXPECT_CUDA(cudaGraphExecDestroy(outer));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(captured));
  EXPECT_CUDA(cudaGraphDestroy(clone));
}

TEST_F(GraphQueries, AreDrawnWithTheKindOfEachNode) {
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaEventCreate(&event));
  cudaGraphNode_t last = empty();
  const auto add = [&](cudaGraphNodeType type, cudaGraphNodeParams what = {}) {
    what.type = type;
    cudaGraphNode_t made = nullptr;
    EXPECT_CUDA(cudaGraphAddNode(&made, graph_, &last, nullptr, 1, &what));
    cudaGraphNodeType told{};
    EXPECT_CUDA(cudaGraphNodeGetType(made, &told));
    EXPECT_EQ(told, type);
    last = made;
    return what;
  };
  cudaGraphNodeParams what{};
  what.host.fn = [](void*) {};
  add(cudaGraphNodeTypeHost, what);
  what = {};
  what.memset.dst = ints_->data();
  what.memset.value = 3;
  what.memset.elementSize = 4;
  what.memset.width = 2;
  what.memset.height = 1;
  add(cudaGraphNodeTypeMemset, what);
  what = {};
  what.memcpy.copyParams.srcPtr = {ints_->data(), 8, 8, 1};
  what.memcpy.copyParams.dstPtr = {ints_->data() + 4, 8, 8, 1};
  what.memcpy.copyParams.extent = {8, 1, 1};
  what.memcpy.copyParams.kind = cudaMemcpyDefault;
  add(cudaGraphNodeTypeMemcpy, what);
  what = {};
  what.eventRecord.event = event;
  add(cudaGraphNodeTypeEventRecord, what);
  what = {};
  what.eventWait.event = event;
  add(cudaGraphNodeTypeWaitEvent, what);
  what = {};
  what.alloc.bytesize = 100;
  what.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  what.alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
  what = add(cudaGraphNodeTypeMemAlloc, what);
  ASSERT_NE(what.alloc.dptr, nullptr);
  void* const memory = what.alloc.dptr;
  what = {};
  what.free.dptr = memory;
  add(cudaGraphNodeTypeMemFree, what);
  add(cudaGraphNodeTypeEmpty);
  run();
  EXPECT_EQ(contents()[1], 3);
  EXPECT_EQ(contents()[5], 3);

  const std::string path = std::filesystem::temp_directory_path() / ("hpe-graph-" + std::to_string(getpid()));
  EXPECT_CUDA(cudaGraphDebugDotPrint(graph_, path.c_str(), 0));
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  EXPECT_TRUE(text.starts_with("digraph hpe {\n")) << text;
  EXPECT_TRUE(text.ends_with("}\n")) << text;
  std::size_t at = 0;
  for (const char* const label : {"empty", "host", "memset", "memcpy", "event record", "event wait",
                                  "memory allocation", "memory free", "empty"}) {
    const std::string expected = " [label=\"" + std::string(label) + "\"];\n";
    at = text.find(expected, at);
    ASSERT_NE(at, std::string::npos) << label << " in\n" << text;
    ++at;
  }
  EXPECT_EQ(static_cast<int>(std::count(text.begin(), text.end(), '>')), 8) << text;
  EXPECT_FAILS(cudaGraphDebugDotPrint(graph_, nullptr, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphDebugDotPrint(graph_, "/absent-folder/graph", 0), cudaErrorOperatingSystem);
  cudaGraphNodeType type{};
  EXPECT_FAILS(cudaGraphNodeGetType(nullptr, &type), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphNodeGetType(last, nullptr), cudaErrorInvalidValue);
  cudaGraphNode_t made = nullptr;
  EXPECT_FAILS(cudaGraphAddNode(&made, graph_, nullptr, nullptr, 0, nullptr), cudaErrorInvalidValue);
  cudaGraphNodeParams unknown{};
  unknown.type = cudaGraphNodeTypeExtSemaphoreSignal;
  EXPECT_FAILS(cudaGraphAddNode(&made, graph_, nullptr, nullptr, 0, &unknown), cudaErrorNotSupported);
  EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(GraphQueries, ConditionalNodesHaveAsManyBodiesAsTheirKindAllows) {
  const auto made = [&](cudaGraphConditionalNodeType type, unsigned size) {
    cudaGraphConditionalHandle handle = 0;
    EXPECT_CUDA(cudaGraphConditionalHandleCreate(&handle, graph_, 0, cudaGraphCondAssignDefault));
    cudaGraphNodeParams what{};
    what.type = cudaGraphNodeTypeConditional;
    what.conditional.handle = handle;
    what.conditional.type = type;
    what.conditional.size = size;
    cudaGraphNode_t node = nullptr;
    const cudaError_t error = cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &what);
    EXPECT_EQ(what.conditional.phGraph_out != nullptr, error == cudaSuccess);
    for (unsigned i = 0; error == cudaSuccess && i < size; ++i) {
      cudaGraphNode_t inner = nullptr;
      EXPECT_CUDA(cudaGraphAddEmptyNode(&inner, what.conditional.phGraph_out[i], nullptr, 0));
    }
    cudaGetLastError();
    if (error == cudaSuccess)
      EXPECT_FAILS(cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &what), cudaErrorInvalidValue);
    return error;
  };
  EXPECT_EQ(made(cudaGraphCondTypeIf, 0), cudaErrorInvalidValue);
  EXPECT_EQ(made(cudaGraphCondTypeIf, 1), cudaSuccess);
  EXPECT_EQ(made(cudaGraphCondTypeIf, 2), cudaSuccess);
  EXPECT_EQ(made(cudaGraphCondTypeIf, 3), cudaErrorInvalidValue);
  EXPECT_EQ(made(cudaGraphCondTypeWhile, 1), cudaSuccess);
  EXPECT_EQ(made(cudaGraphCondTypeWhile, 2), cudaErrorInvalidValue);
  EXPECT_EQ(made(cudaGraphCondTypeSwitch, 5), cudaSuccess);
  EXPECT_EQ(made(static_cast<cudaGraphConditionalNodeType>(3), 1), cudaErrorInvalidValue);
  EXPECT_EQ(made(static_cast<cudaGraphConditionalNodeType>(-1), 1), cudaErrorInvalidValue);
  cudaGraphConditionalHandle handle = 0;
  EXPECT_FAILS(cudaGraphConditionalHandleCreate(&handle, graph_, 0, 2), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphConditionalHandleCreate(nullptr, graph_, 0, 0), cudaErrorInvalidValue);
  cudaGraph_t clone = nullptr;
  EXPECT_FAILS(cudaGraphClone(&clone, graph_), cudaErrorNotSupported);
  cudaGraphExec_t const first = instantiate();
  cudaGraphExec_t second = nullptr;
  EXPECT_FAILS(cudaGraphInstantiate(&second, graph_, 0), cudaErrorNotSupported);
  EXPECT_CUDA(cudaGraphExecDestroy(first));
}

TEST_F(GraphQueries, UserObjectsEndWithTheirLastReference) {
  int ended = 0;
  const auto end = [](void* where) { ++*static_cast<int*>(where); };
  cudaUserObject_t object = nullptr;
  ASSERT_CUDA(cudaUserObjectCreate(&object, &ended, end, 2, cudaUserObjectNoDestructorSync));
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_EQ(ended, 0);
  EXPECT_CUDA(cudaUserObjectRetain(object, 2));
  EXPECT_FAILS(cudaUserObjectRelease(object, 4), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaUserObjectRelease(object, 2));
  EXPECT_EQ(ended, 0);
  // The graph has its own references. A moved reference then belongs to the graph and not to the program.
  EXPECT_CUDA(cudaGraphRetainUserObject(graph_, object, 2, 0));
  EXPECT_CUDA(cudaUserObjectRetain(object, 1));
  EXPECT_CUDA(cudaGraphRetainUserObject(graph_, object, 1, cudaGraphUserObjectMove));
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_EQ(ended, 0);
  EXPECT_CUDA(cudaGraphReleaseUserObject(graph_, object, 2));
  EXPECT_EQ(ended, 0);
  EXPECT_FAILS(cudaGraphReleaseUserObject(graph_, object, 2), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphReleaseUserObject(graph_, object, 1));
  EXPECT_EQ(ended, 1);

  EXPECT_FAILS(cudaUserObjectCreate(nullptr, &ended, end, 1, cudaUserObjectNoDestructorSync), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaUserObjectCreate(&object, &ended, nullptr, 1, cudaUserObjectNoDestructorSync),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaUserObjectCreate(&object, &ended, end, 0, cudaUserObjectNoDestructorSync), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaUserObjectCreate(&object, &ended, end, 1, 0), cudaErrorInvalidValue);
  ASSERT_CUDA(cudaUserObjectCreate(&object, &ended, end, 1, cudaUserObjectNoDestructorSync));
  EXPECT_FAILS(cudaUserObjectRetain(object, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaUserObjectRelease(object, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphRetainUserObject(graph_, object, 0, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphRetainUserObject(graph_, object, 1, 2), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaUserObjectRelease(object, 1));
  EXPECT_EQ(ended, 2);
}

TEST_F(GraphQueries, CapturesTellTheirStateAndTakeNodes) {
  cudaStreamCaptureStatus status{};
  EXPECT_CUDA(cudaStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  cudaGraphNode_t const earlier = empty();
  ASSERT_CUDA(cudaStreamBeginCaptureToGraph(stream_, graph_, &earlier, nullptr, 1, cudaStreamCaptureModeRelaxed));
  unsigned long long id = 0;
  cudaGraph_t into = nullptr;
  const cudaGraphNode_t* after = nullptr;
  std::size_t number = 0;
  const cudaGraphEdgeData* data = reinterpret_cast<const cudaGraphEdgeData*>(1);
  ASSERT_CUDA(cudaStreamGetCaptureInfo(stream_, &status, &id, &into, &after, &data, &number));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(id, 0U);
  EXPECT_EQ(into, graph_);
  ASSERT_EQ(number, 1U);
  EXPECT_EQ(after[0], earlier);
  EXPECT_EQ(data, nullptr);
  cudaGraphNode_t other = empty();
  ASSERT_CUDA(cudaStreamUpdateCaptureDependencies(stream_, &other, nullptr, 1, cudaStreamAddCaptureDependencies));
  ASSERT_CUDA(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &after, nullptr, &number));
  EXPECT_EQ(number, 2U);
  ASSERT_CUDA(cudaStreamUpdateCaptureDependencies(stream_, &other, nullptr, 1, cudaStreamSetCaptureDependencies));
  ASSERT_CUDA(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &after, nullptr, &number));
  ASSERT_EQ(number, 1U);
  EXPECT_EQ(after[0], other);
  EXPECT_FAILS(cudaStreamUpdateCaptureDependencies(stream_, &other, nullptr, 1, 2), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaStreamGetCaptureInfo(stream_, nullptr, &id, &into, &after, &data, &number), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemsetAsync(ints_->data(), 0, 4, stream_));
  cudaGraph_t ended = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream_, &ended));
  EXPECT_EQ(ended, graph_);
  const auto edges = edges_of(graph_);
  ASSERT_EQ(edges.size(), 1U);
  EXPECT_EQ(edges.begin()->first, other);

  ASSERT_CUDA(cudaStreamGetCaptureInfo(stream_, &status, &id, &into, &after, &data, &number));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  EXPECT_FAILS(cudaStreamUpdateCaptureDependencies(stream_, &other, nullptr, 1, cudaStreamSetCaptureDependencies),
               cudaErrorIllegalState);
  EXPECT_FAILS(cudaStreamEndCapture(stream_, &ended), cudaErrorIllegalState);
  EXPECT_FAILS(cudaStreamIsCapturing(stream_, nullptr), cudaErrorInvalidValue);
  for (const int mode : {-1, 3}) {
    auto wrong = static_cast<cudaStreamCaptureMode>(mode);
    EXPECT_FAILS(cudaStreamBeginCapture(stream_, wrong), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaStreamBeginCaptureToGraph(stream_, graph_, nullptr, nullptr, 0, wrong), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaThreadExchangeStreamCaptureMode(&wrong), cudaErrorInvalidValue);
  }
  EXPECT_FAILS(cudaThreadExchangeStreamCaptureMode(nullptr), cudaErrorInvalidValue);
  auto mode = cudaStreamCaptureModeRelaxed;
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
}

}  // namespace
