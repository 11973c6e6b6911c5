// Stream operations that write single words or wait for them, on streams and in graphs, and the words that decide which
// bodies conditional nodes run.
#include <cuda.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;

class Words : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&waiting_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&writing_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&words_, 64), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(words_, 0, 64), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuStreamDestroy(waiting_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(writing_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(words_), CUDA_SUCCESS);
  }

  std::uint64_t word(std::size_t n) const {
    std::uint64_t value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, words_ + 8 * n, sizeof value), CUDA_SUCCESS);
    return value;
  }

  CUstream waiting_ = nullptr, writing_ = nullptr;
  CUdeviceptr words_ = 0;
};

TEST_F(Words, AStreamWaitsForTheValueThatAnotherWrites) {
  constexpr std::uint64_t large = std::uint64_t{3} << 40;
  EXPECT_EQ(cuStreamWaitValue64(waiting_, words_, large, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue32(waiting_, words_ + 8, 5, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWriteValue64(writing_, words_, large, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting_), CUDA_SUCCESS);
  EXPECT_EQ(word(1), 5U);
}

TEST_F(Words, AStreamWaitsForTheHost) {
  volatile unsigned* flag = nullptr;
  ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(const_cast<unsigned**>(&flag)), 4096, 0), CUDA_SUCCESS);
  *flag = 0xfffffff0U;
  const auto address = reinterpret_cast<CUdeviceptr>(flag);
  EXPECT_EQ(cuStreamWaitValue32(waiting_, address, 3, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting_), CUDA_ERROR_NOT_READY);
  *flag = 3;
  EXPECT_EQ(cuStreamSynchronize(waiting_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32(waiting_, address, 4, CU_STREAM_WAIT_VALUE_AND), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting_), CUDA_ERROR_NOT_READY);
  *flag = 0xffffffffU;
  EXPECT_EQ(cuStreamSynchronize(waiting_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32(waiting_, address, 0xfffffffdU, CU_STREAM_WAIT_VALUE_NOR), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(waiting_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWriteValue32(writing_, address, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting_), CUDA_SUCCESS);
  EXPECT_EQ(*flag, 1U);
  EXPECT_EQ(cuMemFreeHost(const_cast<unsigned*>(flag)), CUDA_SUCCESS);
}

TEST_F(Words, RefusesAddressesThatAreNoWords) {
  unsigned own = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(&own);
  EXPECT_EQ(cuStreamWriteValue32(writing_, address, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue32(writing_, words_ + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue64(writing_, words_ + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32(writing_, words_, 1, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 0, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Words, AreWhollyInTheirAllocation) {
  CUdeviceptr three = 0;
  ASSERT_EQ(cuMemAlloc(&three, 12), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue32(writing_, three + 8, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue64(writing_, three + 8, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue64(writing_, three + 8, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32(writing_, three + 12, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(three), CUDA_SUCCESS);
}

// The operations of a batch have the effect of single calls in this order.
TEST_F(Words, ABatchHas256OperationsAtMost) {
  std::array<CUstreamBatchMemOpParams, 257> list{};
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    list[i].writeValue.address = words_ + 4 * (i % 2);
    list[i].writeValue.value = i;
  }
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 257, list.data(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 256, list.data(), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 256, list.data(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
  EXPECT_EQ(word(0), (std::uint64_t{255} << 32) + 254);
  EXPECT_EQ(word(1), 0U);
  list[0].writeValue.flags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 1, list.data(), 0), CUDA_SUCCESS);
  list[0].writeValue.flags = 2;
  EXPECT_EQ(cuStreamBatchMemOp(writing_, 1, list.data(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
}

TEST_F(Words, AGraphWritesThem) {
  std::array<CUstreamBatchMemOpParams, 2> list{};
  list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  list[0].writeValue.address = words_;
  list[0].writeValue.value = 8;
  list[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  list[1].waitValue.address = words_;
  list[1].waitValue.value = 8;
  list[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{nullptr, 2, list.data(), 0};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
  CUgraphNodeType type{};
  EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  CUDA_BATCH_MEM_OP_NODE_PARAMS told{};
  EXPECT_EQ(cuGraphBatchMemOpNodeGetParams(node, &told), CUDA_SUCCESS);
  ASSERT_EQ(told.count, 2U);
  EXPECT_EQ(told.paramArray[1].waitValue.flags, unsigned{CU_STREAM_WAIT_VALUE_EQ});
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, writing_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
  EXPECT_EQ(word(0), 8U);
  list[0].writeValue.value = list[1].waitValue.value = 9;
  EXPECT_EQ(cuGraphExecBatchMemOpNodeSetParams(exec, node, &parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, writing_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
  EXPECT_EQ(word(0), 9U);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// The graph has a conditional node whose body sets the first word to 1.
TEST_F(Words, AConditionDecidesWhetherABodyRuns) {
  for (const unsigned initial : {0U, 1U}) {
    CUgraph graph = nullptr, clone = nullptr;
    ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUgraphConditionalHandle handle = 0;
    ASSERT_EQ(cuGraphConditionalHandleCreate(&handle, graph, current(), initial, CU_GRAPH_COND_ASSIGN_DEFAULT),
              CUDA_SUCCESS);
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = current();
    CUgraphNode node = nullptr;
    ASSERT_EQ(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS ones{};
    ones.dst = words_;
    ones.elementSize = 4;
    ones.value = 1;
    ones.width = ones.height = 1;
    ASSERT_EQ(cuGraphAddMemsetNode(&node, parameters.conditional.phGraph_out[0], nullptr, 0, &ones, current()),
              CUDA_SUCCESS);
    CUgraphExec exec = nullptr, second = nullptr;
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiate(&second, graph, 0),
              CUDA_ERROR_NOT_SUPPORTED);  // two executable graphs would share the condition
    EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cuGraphLaunch(exec, writing_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(writing_), CUDA_SUCCESS);
    EXPECT_EQ(word(0), initial);
    EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphInstantiate(&second, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphExecDestroy(second), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  }
}

}  // namespace
