// Nodes of graphs: a node executes according to its parameters, queries return the parameters after each change, and
// wrong parameters are refused.

#include <algorithm>
#include <array>
#include <cstring>

#include "graph_fixture.h"
#include "kernels.h"

namespace {

TEST_F(GraphQueries, MemcpyNodesCopyAndTellTheirParameters) {
  std::vector<int> from(count);
  std::vector<int> other(count);
  for (int i = 0; i < count; ++i) from[i] = i, other[i] = 7 * i;
  constexpr std::size_t bytes = count * sizeof(int);
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(
      cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, ints_->data(), from.data(), bytes, cudaMemcpyDefault));
  cudaMemcpy3DParms told{};
  ASSERT_CUDA(cudaGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(told.srcPtr.ptr, from.data());
  EXPECT_EQ(told.dstPtr.ptr, ints_->data());
  EXPECT_EQ(told.extent.width, bytes);
  EXPECT_EQ(told.extent.height, 1U);
  EXPECT_EQ(told.extent.depth, 1U);
  EXPECT_EQ(told.kind, cudaMemcpyDefault);
  run();
  EXPECT_EQ(contents(), from);

  ASSERT_CUDA(cudaGraphMemcpyNodeSetParams1D(node, ints_->data(), other.data(), bytes, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(told.srcPtr.ptr, other.data());
  EXPECT_EQ(told.kind, cudaMemcpyHostToDevice);
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(contents(), other);

  // A change of an executable graph does not change the graph.
  ASSERT_CUDA(cudaGraphExecMemcpyNodeSetParams1D(exec, node, ints_->data(), from.data(), bytes / 2, cudaMemcpyDefault));
  run(exec);
  std::vector<int> half = other;
  std::copy_n(from.begin(), count / 2, half.begin());
  EXPECT_EQ(contents(), half);
  ASSERT_CUDA(cudaGraphMemcpyNodeGetParams(node, &told));
  EXPECT_EQ(told.extent.width, bytes);
  ASSERT_CUDA(cudaGraphExecMemcpyNodeSetParams(exec, node, &told));
  run(exec);
  EXPECT_EQ(contents(), other);
  told.srcPtr.ptr = from.data();
  ASSERT_CUDA(cudaGraphMemcpyNodeSetParams(node, &told));
  run();
  EXPECT_EQ(contents(), from);

  cudaGraphNode_t second = nullptr;
  told.srcPtr.ptr = other.data();
  ASSERT_CUDA(cudaGraphAddMemcpyNode(&second, graph_, &node, 1, &told));
  run();
  EXPECT_EQ(contents(), other);

  EXPECT_FAILS(cudaGraphMemcpyNodeGetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemcpyNodeSetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemcpyNodeGetParams(empty(), &told), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphAddMemcpyNode(nullptr, graph_, nullptr, 0, &told), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphQueries, NodesCopyToAndFromSymbols) {
  const float values[] = {11, 12};
  float out[4]{};
  const auto in_symbol = [&] {
    std::array<float, 4> read{};
    EXPECT_CUDA(cudaMemcpyFromSymbol(read.data(), symbol_coefficients(), sizeof read));
    return read;
  };
  cudaGraphNode_t to = nullptr;
  cudaGraphNode_t from = nullptr;
  const void* const symbol = symbol_coefficients();
  ASSERT_CUDA(cudaGraphAddMemcpyNodeToSymbol(&to, graph_, nullptr, 0, symbol, values, 8, 8, cudaMemcpyDefault));
  ASSERT_CUDA(cudaGraphAddMemcpyNodeFromSymbol(&from, graph_, &to, 1, out, symbol, 8, 4, cudaMemcpyDefault));
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(in_symbol(), (std::array<float, 4>{1, 2, 11, 12}));
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 11);
  EXPECT_EQ(out[2], 0);

  const float others[] = {21, 22};
  ASSERT_CUDA(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, to, symbol, others, 8, 0, cudaMemcpyDefault));
  ASSERT_CUDA(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, out + 1, symbol, 12, 4, cudaMemcpyDefault));
  run(exec);
  EXPECT_EQ(in_symbol(), (std::array<float, 4>{21, 22, 11, 12}));
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 22);
  EXPECT_EQ(out[3], 12);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));

  ASSERT_CUDA(cudaGraphMemcpyNodeSetParamsToSymbol(to, symbol, values, 4, 12, cudaMemcpyDefault));
  ASSERT_CUDA(cudaGraphMemcpyNodeSetParamsFromSymbol(from, out, symbol, 16, 0, cudaMemcpyDefault));
  run();
  EXPECT_EQ(in_symbol(), (std::array<float, 4>{21, 22, 11, 11}));
  EXPECT_EQ(out[3], 11);

  // Copies that end one or more bytes beyond the symbol's end are refused.
  EXPECT_FAILS(cudaGraphMemcpyNodeSetParamsToSymbol(to, symbol, values, 5, 12, cudaMemcpyDefault),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemcpyNodeSetParamsFromSymbol(from, out, symbol, 1, 16, cudaMemcpyDefault),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemcpyNodeSetParamsFromSymbol(from, out, symbol, ~std::size_t{0}, 8, cudaMemcpyDefault),
               cudaErrorInvalidValue);
  const float first[] = {1, 2, 3, 4};
  EXPECT_CUDA(cudaMemcpyToSymbol(symbol, first, sizeof first));
}

TEST_F(GraphQueries, MemsetNodesSetAndTellTheirParameters) {
  cudaMemsetParams what{};
  what.dst = ints_->data();
  what.value = 0x01020304;
  what.elementSize = 4;
  what.width = 3;
  what.height = 2;
  what.pitch = 8 * sizeof(int);
  EXPECT_CUDA(cudaMemset(ints_->data(), 0, count * sizeof(int)));
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &what));
  std::vector<int> expected(count);
  for (const int at : {0, 1, 2, 8, 9, 10}) expected[at] = 0x01020304;
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(contents(), expected);
  cudaMemsetParams told{};
  ASSERT_CUDA(cudaGraphMemsetNodeGetParams(node, &told));
  EXPECT_EQ(std::memcmp(&told, &what, sizeof what), 0);

  what.value = 0x5566;
  what.elementSize = 2;
  what.height = 1;
  ASSERT_CUDA(cudaGraphExecMemsetNodeSetParams(exec, node, &what));
  run(exec);
  expected[0] = 0x55665566;
  expected[1] = 0x01025566;
  EXPECT_EQ(contents(), expected);
  ASSERT_CUDA(cudaGraphMemsetNodeGetParams(node, &told));
  EXPECT_EQ(told.elementSize, 4U);
  what.value = 0x77;
  what.elementSize = 1;
  ASSERT_CUDA(cudaGraphMemsetNodeSetParams(node, &what));
  ASSERT_CUDA(cudaGraphMemsetNodeGetParams(node, &told));
  EXPECT_EQ(told.elementSize, 1U);
  run();
  expected[0] = 0x55777777;
  EXPECT_EQ(contents(), expected);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));

  for (const unsigned size : {0U, 3U, 5U, 8U}) {
    what.elementSize = size;
    EXPECT_FAILS(cudaGraphMemsetNodeSetParams(node, &what), cudaErrorInvalidValue);
  }
  EXPECT_FAILS(cudaGraphMemsetNodeGetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemsetNodeSetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemsetNodeGetParams(empty(), &told), cudaErrorInvalidValue);
}

TEST_F(GraphQueries, KernelNodesRunAndTellTheirParameters) {
  std::vector<int> one(count, 1);
  on_device<float> a(count);
  on_device<float> sum(count);
  std::vector<float> values(count, 1.5F);
  EXPECT_CUDA(cudaMemcpy(a.data(), values.data(), count * sizeof(float), cudaMemcpyDefault));
  const auto sums = [&] {
    std::vector<float> out(count);
    EXPECT_CUDA(cudaMemcpy(out.data(), sum.data(), count * sizeof(float), cudaMemcpyDefault));
    EXPECT_CUDA(cudaMemset(sum.data(), 0, count * sizeof(float)));
    return static_cast<int>(std::count(out.begin(), out.end(), 3.0F));
  };
  sums();
  float* in = a.data();
  float* out = sum.data();
  int number = count;
  void* arguments[] = {&in, &in, &out, &number};
  cudaKernelNodeParams what{const_cast<void*>(kernel_add()), dim3(2), dim3(32), 0, arguments, nullptr};
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &what));
  number = 5;  // has no effect: the node has its own copy of the argument
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(sums(), count);
  cudaKernelNodeParams told{};
  ASSERT_CUDA(cudaGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(told.func, what.func);
  EXPECT_EQ(told.gridDim.x, 2U);
  EXPECT_EQ(told.blockDim.x, 32U);
  EXPECT_EQ(told.sharedMemBytes, 0U);
  EXPECT_EQ(told.extra, nullptr);
  EXPECT_EQ(*static_cast<float**>(told.kernelParams[0]), in);
  EXPECT_EQ(*static_cast<float**>(told.kernelParams[2]), out);
  EXPECT_EQ(*static_cast<int*>(told.kernelParams[3]), count);

  what.gridDim = dim3(1);
  number = count;
  ASSERT_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &what));
  run(exec);
  EXPECT_EQ(sums(), 32);
  number = 7;
  ASSERT_CUDA(cudaGraphKernelNodeSetParams(node, &what));
  run();
  EXPECT_EQ(sums(), 7);
  run(exec);
  EXPECT_EQ(sums(), 32);

  cudaGraphNodeParams general{};
  general.type = cudaGraphNodeTypeKernel;
  general.kernel.func = what.func;
  general.kernel.gridDim = dim3(3);
  general.kernel.blockDim = dim3(8);
  general.kernel.kernelParams = arguments;
  number = count;
  ASSERT_CUDA(cudaGraphExecNodeSetParams(exec, node, &general));
  run(exec);
  EXPECT_EQ(sums(), 24);
  general.kernel.gridDim = dim3(4);
  ASSERT_CUDA(cudaGraphNodeSetParams(node, &general));
  run();
  EXPECT_EQ(sums(), 32);
  ASSERT_CUDA(cudaGraphKernelNodeGetParams(node, &told));
  EXPECT_EQ(told.gridDim.x, 4U);
  EXPECT_EQ(told.blockDim.x, 8U);

  // A change of the parameters does not change the attributes, and attributes can be copied without the parameters.
  cudaKernelNodeAttrValue value{};
  value.priority = -1;
  ASSERT_CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value));
  ASSERT_CUDA(cudaGraphKernelNodeSetParams(node, &what));
  value.priority = 9;
  ASSERT_CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
  EXPECT_EQ(value.priority, -1);
  cudaGraphNode_t second = nullptr;
  ASSERT_CUDA(cudaGraphAddKernelNode(&second, graph_, nullptr, 0, &what));
  value.priority = 9;
  ASSERT_CUDA(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributePriority, &value));
  EXPECT_EQ(value.priority, 0);
  ASSERT_CUDA(cudaGraphKernelNodeCopyAttributes(second, node));
  ASSERT_CUDA(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributePriority, &value));
  EXPECT_EQ(value.priority, -1);

  EXPECT_FAILS(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphKernelNodeGetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphKernelNodeGetParams(empty(), &told), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphKernelNodeCopyAttributes(empty(), node), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphKernelNodeSetParams(node, nullptr), cudaErrorInvalidValue);
  what.func = nullptr;
  EXPECT_FAILS(cudaGraphKernelNodeSetParams(node, &what), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphNodeSetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphExecNodeSetParams(exec, node, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphQueries, HostNodesCallAndTellTheirFunction) {
  int first = 0;
  int second = 0;
  const auto add_one = [](void* where) { ++*static_cast<int*>(where); };
  const auto add_ten = [](void* where) { *static_cast<int*>(where) += 10; };
  cudaHostNodeParams what{add_one, &first};
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddHostNode(&node, graph_, nullptr, 0, &what));
  cudaHostNodeParams told{};
  ASSERT_CUDA(cudaGraphHostNodeGetParams(node, &told));
  EXPECT_EQ(told.fn, what.fn);
  EXPECT_EQ(told.userData, &first);
  cudaGraphExec_t const exec = instantiate();
  run(exec);
  EXPECT_EQ(first, 1);
  what = {add_ten, &second};
  ASSERT_CUDA(cudaGraphExecHostNodeSetParams(exec, node, &what));
  run(exec);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 10);
  what = {add_ten, &first};
  ASSERT_CUDA(cudaGraphHostNodeSetParams(node, &what));
  run();
  EXPECT_EQ(first, 11);
  cudaGraphNodeParams general{};
  general.type = cudaGraphNodeTypeHost;
  general.host.fn = add_one;
  general.host.userData = &second;
  cudaGraphNode_t other = nullptr;
  ASSERT_CUDA(cudaGraphAddNode(&other, graph_, &node, nullptr, 1, &general));
  run();
  EXPECT_EQ(first, 21);
  EXPECT_EQ(second, 11);

  unsigned enabled = 9;  // host nodes cannot be disabled
  EXPECT_FAILS(cudaGraphNodeGetEnabled(exec, node, &enabled), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphNodeSetEnabled(exec, node, 0), cudaErrorInvalidValue);
  what.fn = nullptr;
  EXPECT_FAILS(cudaGraphHostNodeSetParams(node, &what), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphHostNodeSetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphHostNodeGetParams(node, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphHostNodeGetParams(empty(), &told), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphQueries, NodesThatAreDisabledDoNothing) {
  cudaMemsetParams what{};
  what.dst = ints_->data();
  what.elementSize = 1;
  what.width = 4;
  what.height = 1;
  what.value = 1;
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddMemsetNode(&node, graph_, nullptr, 0, &what));
  cudaGraphExec_t const exec = instantiate();
  for (const unsigned on : {0U, 7U, 0U, 1U}) {
    EXPECT_CUDA(cudaMemset(ints_->data(), 0, 4));
    EXPECT_CUDA(cudaGraphNodeSetEnabled(exec, node, on));
    unsigned told = 9;
    EXPECT_CUDA(cudaGraphNodeGetEnabled(exec, node, &told));
    EXPECT_EQ(told, on != 0 ? 1U : 0U);
    run(exec);
    EXPECT_EQ(contents()[0], on != 0 ? 0x01010101 : 0);
  }
  EXPECT_FAILS(cudaGraphNodeGetEnabled(exec, node, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
}

TEST_F(GraphQueries, EventNodesTellTheirEvents) {
  cudaEvent_t events[2];
  for (auto& each : events) ASSERT_CUDA(cudaEventCreate(&each));
  cudaGraphNode_t record = nullptr;
  cudaGraphNode_t wait = nullptr;
  ASSERT_CUDA(cudaGraphAddEventRecordNode(&record, graph_, nullptr, 0, events[0]));
  ASSERT_CUDA(cudaGraphAddEventWaitNode(&wait, graph_, &record, 1, events[0]));
  cudaEvent_t told = nullptr;
  ASSERT_CUDA(cudaGraphEventRecordNodeGetEvent(record, &told));
  EXPECT_EQ(told, events[0]);
  ASSERT_CUDA(cudaGraphEventWaitNodeGetEvent(wait, &told));
  EXPECT_EQ(told, events[0]);
  ASSERT_CUDA(cudaGraphEventRecordNodeSetEvent(record, events[1]));
  ASSERT_CUDA(cudaGraphEventRecordNodeGetEvent(record, &told));
  EXPECT_EQ(told, events[1]);
  ASSERT_CUDA(cudaGraphEventWaitNodeSetEvent(wait, events[1]));
  ASSERT_CUDA(cudaGraphEventWaitNodeGetEvent(wait, &told));
  EXPECT_EQ(told, events[1]);
  EXPECT_FAILS(cudaGraphEventWaitNodeGetEvent(record, &told), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphEventRecordNodeGetEvent(wait, &told), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphEventWaitNodeGetEvent(wait, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphEventRecordNodeGetEvent(record, nullptr), cudaErrorInvalidValue);
  // The executable graph records the event that was set last, so the time of the other event is unknown.
  cudaGraphExec_t const exec = instantiate();
  ASSERT_CUDA(cudaGraphExecEventRecordNodeSetEvent(exec, record, events[0]));
  ASSERT_CUDA(cudaGraphExecEventWaitNodeSetEvent(exec, wait, events[0]));
  run(exec);
  float time = -1;
  EXPECT_CUDA(cudaEventElapsedTime(&time, events[0], events[0]));
  EXPECT_EQ(time, 0);
  EXPECT_FAILS(cudaEventElapsedTime(&time, events[1], events[1]), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  for (const auto each : events) EXPECT_CUDA(cudaEventDestroy(each));
}

TEST_F(GraphQueries, MemoryNodesTellTheirMemoryAndCountIt) {
  const auto attribute = [](cudaGraphMemAttributeType which) {
    std::uint64_t value = ~0ULL;
    EXPECT_CUDA(cudaDeviceGetGraphMemAttribute(0, which, &value));
    return value;
  };
  const auto expect = [&](std::uint64_t now, std::uint64_t most) {
    EXPECT_EQ(attribute(cudaGraphMemAttrUsedMemCurrent), now);
    EXPECT_EQ(attribute(cudaGraphMemAttrReservedMemCurrent), now);
    EXPECT_EQ(attribute(cudaGraphMemAttrUsedMemHigh), most);
    EXPECT_EQ(attribute(cudaGraphMemAttrReservedMemHigh), most);
  };
  std::uint64_t zero = 0;
  EXPECT_CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  expect(0, 0);
  cudaMemAllocNodeParams what{};
  what.bytesize = 12345;
  what.poolProps.allocType = cudaMemAllocationTypePinned;
  what.poolProps.location = {cudaMemLocationTypeDevice, 0};
  cudaGraphNode_t made = nullptr;
  cudaGraphNode_t freed = nullptr;
  ASSERT_CUDA(cudaGraphAddMemAllocNode(&made, graph_, nullptr, 0, &what));
  ASSERT_NE(what.dptr, nullptr);
  expect(12345, 12345);
  cudaMemAllocNodeParams told{};
  ASSERT_CUDA(cudaGraphMemAllocNodeGetParams(made, &told));
  EXPECT_EQ(told.dptr, what.dptr);
  EXPECT_EQ(told.bytesize, 12345U);
  EXPECT_EQ(told.poolProps.location.id, 0);
  ASSERT_CUDA(cudaGraphAddMemFreeNode(&freed, graph_, &made, 1, what.dptr));
  void* address = nullptr;
  ASSERT_CUDA(cudaGraphMemFreeNodeGetParams(freed, &address));
  EXPECT_EQ(address, what.dptr);
  EXPECT_FAILS(cudaGraphMemFreeNodeGetParams(made, &address), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemFreeNodeGetParams(freed, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemAllocNodeGetParams(freed, &told), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphMemAllocNodeGetParams(made, nullptr), cudaErrorInvalidValue);

  // Each wrong parameter is refused, even if all other parameters are right.
  cudaGraphNode_t none = nullptr;
  const auto refused = [&](cudaError_t code, const auto& change) {
    cudaMemAllocNodeParams wrong = what;
    change(wrong);
    EXPECT_FAILS(cudaGraphAddMemAllocNode(&none, graph_, nullptr, 0, &wrong), code);
  };
  refused(cudaErrorInvalidValue, [](auto& w) { w.bytesize = 0; });
  refused(cudaErrorInvalidValue, [](auto& w) { w.poolProps.allocType = cudaMemAllocationTypeInvalid; });
  refused(cudaErrorInvalidValue, [](auto& w) { w.poolProps.handleTypes = cudaMemHandleTypePosixFileDescriptor; });
  refused(cudaErrorInvalidValue, [](auto& w) { w.poolProps.location.type = cudaMemLocationTypeHost; });
  refused(cudaErrorInvalidDevice, [](auto& w) { w.poolProps.location.id = 2; });
  EXPECT_FAILS(cudaGraphAddMemAllocNode(&none, graph_, nullptr, 0, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphAddMemFreeNode(&none, graph_, nullptr, 0, ints_->data()), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGraphAddMemFreeNode(nullptr, graph_, nullptr, 0, what.dptr), cudaErrorInvalidValue);

  // Allocates more memory, which is freed with its nodes; the greatest amount does not decrease until the program
  // resets it.
  what.bytesize = 5;
  cudaGraphNode_t second = nullptr;
  ASSERT_CUDA(cudaGraphAddMemAllocNode(&second, graph_, nullptr, 0, &what));
  expect(12350, 12350);
  std::uint64_t one = 1;
  EXPECT_FAILS(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &one), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceSetGraphMemAttribute(2, cudaGraphMemAttrReservedMemHigh, &zero), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetGraphMemAttribute(2, cudaGraphMemAttrReservedMemHigh, &zero), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetGraphMemAttribute(0, static_cast<cudaGraphMemAttributeType>(99), &zero),
               cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDeviceGraphMemTrim(1));
  EXPECT_FAILS(cudaDeviceGraphMemTrim(2), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaGraphDestroy(graph_));
  ASSERT_CUDA(cudaGraphCreate(&graph_, 0));
  expect(0, 12350);
  zero = 0;
  EXPECT_CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
  expect(0, 0);
}

TEST_F(GraphQueries, ConditionsChooseTheirBodies) {
  // At each launch, a condition starts with its default value, and this value decides which body runs.
  struct test_case {
    cudaGraphConditionalNodeType type;
    unsigned bodies;
    unsigned value;
    int chosen;
  };
  for (const test_case& each :
       {test_case{cudaGraphCondTypeIf, 1, 0, -1}, test_case{cudaGraphCondTypeIf, 1, 1, 0},
        test_case{cudaGraphCondTypeIf, 1, 9, 0}, test_case{cudaGraphCondTypeIf, 2, 0, 1},
        test_case{cudaGraphCondTypeIf, 2, 2, 0}, test_case{cudaGraphCondTypeWhile, 1, 0, -1},
        test_case{cudaGraphCondTypeSwitch, 3, 0, 0}, test_case{cudaGraphCondTypeSwitch, 3, 2, 2},
        test_case{cudaGraphCondTypeSwitch, 3, 3, -1}}) {
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle = 0;
    ASSERT_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, each.value, cudaGraphCondAssignDefault));
    cudaGraphNodeParams what{};
    what.type = cudaGraphNodeTypeConditional;
    what.conditional.handle = handle;
    what.conditional.type = each.type;
    what.conditional.size = each.bodies;
    cudaGraphNode_t node = nullptr;
    ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &what));
    for (unsigned i = 0; i < each.bodies; ++i) {
      cudaMemsetParams set{ints_->data() + i, 4, 5, 4, 1, 1};
      cudaGraphNode_t inner = nullptr;
      ASSERT_CUDA(cudaGraphAddMemsetNode(&inner, what.conditional.phGraph_out[i], nullptr, 0, &set));
    }
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 2; ++round) {
      EXPECT_CUDA(cudaMemset(ints_->data(), 0, count * sizeof(int)));
      run(exec);
      const std::vector<int> out = contents();
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(out[i], i == each.chosen ? 5 : 0) << each.type << " " << each.bodies << " " << each.value;
    }
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
    EXPECT_CUDA(cudaGraphDestroy(graph));
  }
}

}  // namespace
