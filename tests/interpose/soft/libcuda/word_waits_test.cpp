// Streams that wait for words of memory while kernels stand behind the wait. hpe assumes that these kernels may use all
// memory of the device, also the word.
#include <cuda.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;

constexpr const char* word_kernels = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry store(.param .u64 out, .param .u64 value) {
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [value];
  st.global.u64 [%rd1], %rd2;
  ret;
}
.visible .entry count(.param .u64 counter) {
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [counter];
  ld.global.u64 %rd2, [%rd1];
  add.u64 %rd3, %rd2, 1;
  st.global.u64 [%rd1], %rd3;
  ret;
}
.visible .entry spin(.param .u64 word, .param .u64 until) {
  .reg .b64 %rd<4>;
  .reg .pred %p1;
  ld.param.u64 %rd1, [word];
  ld.param.u64 %rd2, [until];
again:
  ld.volatile.global.u64 %rd3, [%rd1];
  setp.ne.u64 %p1, %rd3, %rd2;
  @%p1 bra again;
  ret;
}
.visible .entry fault() {
  trap;
}
)";

// A wait in words of 64 bits; waits for 32 bits use the upper halves of the values.
struct wait_condition {
  const char* name;
  unsigned flags;
  std::uint64_t wanted;
  std::uint64_t before;  // does not end the wait
  std::uint64_t after;   // ends it
};

constexpr std::uint64_t upper(std::uint32_t value) { return std::uint64_t{value} << 32; }

constexpr std::array conditions{
    wait_condition{"GEQ, exactly", CU_STREAM_WAIT_VALUE_GEQ, upper(7), upper(7) - 1, upper(7)},
    wait_condition{"GEQ, around 0", CU_STREAM_WAIT_VALUE_GEQ, upper(1), upper(0xfffffff0U), upper(2)},
    wait_condition{"EQ", CU_STREAM_WAIT_VALUE_EQ, upper(7), upper(8), upper(7)},
    wait_condition{"AND", CU_STREAM_WAIT_VALUE_AND, upper(4), upper(3) + 4, upper(6)},
    wait_condition{"NOR", CU_STREAM_WAIT_VALUE_NOR, ~upper(2), upper(2), upper(1)},
};

enum class word_writer { operation, kernel, copy, host };
enum class wait_form { call, batch, graph };
constexpr std::initializer_list<wait_form> all_forms{wait_form::call, wait_form::batch, wait_form::graph};
constexpr std::initializer_list<wait_form> one_call{wait_form::call};

class WordWaits : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    ASSERT_GOOD(cuCtxSetCurrent(retained(0)));
    ASSERT_GOOD(cuStreamCreate(&waiting_, CU_STREAM_NON_BLOCKING));
    ASSERT_GOOD(cuStreamCreate(&writing_, CU_STREAM_NON_BLOCKING));
    ASSERT_GOOD(cuMemAlloc(&words_, 64));
    ASSERT_GOOD(cuMemsetD8(words_, 0, 64));
    ASSERT_GOOD(cuModuleLoadData(&module_, word_kernels));
  }

  CUfunction kernel(const char* name) const {
    CUfunction found = nullptr;
    EXPECT_GOOD(cuModuleGetFunction(&found, module_, name));
    return found;
  }

  CUresult launch(CUstream stream, const char* name, std::vector<std::uint64_t> values) const {
    std::vector<void*> arguments;
    for (std::uint64_t& each : values) arguments.push_back(&each);
    return cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, arguments.data(), nullptr);
  }

  std::uint64_t value_at(CUdeviceptr address) const {
    std::uint64_t value = 0;
    EXPECT_GOOD(cuMemcpyDtoH(&value, address, sizeof value));
    return value;
  }

  // Makes the stream wait for the word, in the given form. `other` is a word that a batch writes before it waits.
  void wait(wait_form form, CUdeviceptr word, std::size_t bytes, const wait_condition& until, CUdeviceptr other) const {
    std::array<CUstreamBatchMemOpParams, 2> list{};
    list[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    list[0].writeValue.address = other;
    list[1].waitValue.operation = bytes == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
    list[1].waitValue.address = word;
    list[1].waitValue.value64 = until.wanted >> (64 - 8 * bytes);
    list[1].waitValue.flags = until.flags;
    if (form == wait_form::batch) {
      ASSERT_GOOD(cuStreamBatchMemOp(waiting_, 2, list.data(), 0));
    } else if (form == wait_form::call && bytes == 8) {
      ASSERT_GOOD(cuStreamWaitValue64(waiting_, word, list[1].waitValue.value64, until.flags));
    } else if (form == wait_form::call) {
      ASSERT_GOOD(cuStreamWaitValue32(waiting_, word, list[1].waitValue.value, until.flags));
    } else {
      CUgraph graph = nullptr;
      CUgraphNode node = nullptr;
      CUgraphExec exec = nullptr;
      const CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{nullptr, 1, &list[1], 0};
      ASSERT_GOOD(cuGraphCreate(&graph, 0));
      ASSERT_GOOD(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &parameters));
      ASSERT_GOOD(cuGraphInstantiate(&exec, graph, 0));
      ASSERT_GOOD(cuGraphLaunch(exec, waiting_));
      ASSERT_GOOD(cuGraphExecDestroy(exec));
      ASSERT_GOOD(cuGraphDestroy(graph));
    }
  }

  void write(word_writer who, CUdeviceptr word, std::uint64_t value, bool is_pinned) const {
    switch (who) {
      case word_writer::operation: ASSERT_GOOD(cuStreamWriteValue64(writing_, word, value, 0)); return;
      case word_writer::kernel: ASSERT_GOOD(launch(writing_, "store", {word, value})); return;
      case word_writer::copy: ASSERT_GOOD(cuMemcpyHtoDAsync(word, &value, sizeof value, writing_)); return;
      case word_writer::host:
        if (is_pinned)
          *reinterpret_cast<volatile std::uint64_t*>(word) = value;
        else
          ASSERT_GOOD(cuMemcpyHtoD(word, &value, sizeof value));
    }
  }

  // For every condition, width, form of the wait and writer: the stream waits for the word, and a kernel behind the
  // wait sets another word.
  void expect_waits_end(CUdeviceptr word, bool is_pinned, std::initializer_list<wait_form> forms,
                        std::initializer_list<word_writer> writers) const {
    std::uint64_t round = 0;
    for (const wait_condition& until : conditions)
      for (const std::size_t bytes : {4U, 8U})
        for (const wait_form form : forms)
          for (const word_writer who : writers) {
            SCOPED_TRACE(std::string(until.name) + ", " + std::to_string(bytes) + " bytes, form " +
                         std::to_string(static_cast<int>(form)) + ", writer " + std::to_string(static_cast<int>(who)));
            ++round;
            ASSERT_NO_FATAL_FAILURE(write(word_writer::host, word, until.before, is_pinned));
            const CUdeviceptr half = word + 8 - bytes;
            ASSERT_NO_FATAL_FAILURE(wait(form, half, bytes, until, words_ + 16));
            ASSERT_GOOD(launch(waiting_, "store", {words_ + 8, round}));
            ASSERT_EQ(cuStreamQuery(waiting_), CUDA_ERROR_NOT_READY);
            ASSERT_NO_FATAL_FAILURE(write(who, word, until.after, is_pinned));
            ASSERT_GOOD(cuStreamSynchronize(waiting_));
            ASSERT_EQ(value_at(words_ + 8), round);
            ASSERT_GOOD(cuStreamSynchronize(writing_));
          }
  }

  CUstream waiting_ = nullptr, writing_ = nullptr;
  CUdeviceptr words_ = 0;
  CUmodule module_ = nullptr;
};

TEST_F(WordWaits, EndBeforeKernelsWhenDeviceMemoryIsWritten) {
  expect_waits_end(words_, false, all_forms,
                   {word_writer::operation, word_writer::kernel, word_writer::copy, word_writer::host});
}

TEST_F(WordWaits, EndBeforeKernelsWhenManagedMemoryIsWritten) {
  CUdeviceptr managed = 0;
  ASSERT_GOOD(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  expect_waits_end(managed, false, one_call, {word_writer::operation, word_writer::kernel, word_writer::host});
  EXPECT_GOOD(cuMemFree(managed));
}

TEST_F(WordWaits, EndBeforeKernelsWhenPinnedMemoryIsWritten) {
  void* pinned = nullptr;
  ASSERT_GOOD(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr address = 0;
  ASSERT_GOOD(cuMemHostGetDevicePointer(&address, pinned, 0));
  expect_waits_end(address, true, all_forms, {word_writer::operation, word_writer::kernel, word_writer::host});
  EXPECT_GOOD(cuMemFreeHost(pinned));
}

TEST_F(WordWaits, EndBeforeKernelsWhenMappedMemoryIsWritten) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::size_t unit = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUdeviceptr mapped = 0;
  ASSERT_GOOD(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ASSERT_GOOD(cuMemCreate(&memory, unit, &properties, 0));
  ASSERT_GOOD(cuMemAddressReserve(&mapped, unit, 0, 0, 0));
  ASSERT_GOOD(cuMemMap(mapped, unit, 0, memory, 0));
  ASSERT_GOOD(cuMemSetAccess(mapped, unit, &access, 1));
  expect_waits_end(mapped, false, one_call,
                   {word_writer::operation, word_writer::kernel, word_writer::copy, word_writer::host});
  EXPECT_GOOD(cuMemUnmap(mapped, unit));
  EXPECT_GOOD(cuMemAddressFree(mapped, unit));
  EXPECT_GOOD(cuMemRelease(memory));
}

TEST_F(WordWaits, InPinnedMemoryEndWhileAKernelRuns) {
  void* pinned = nullptr;
  ASSERT_GOOD(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* const words = static_cast<volatile std::uint64_t*>(pinned);
  words[0] = 0;
  words[1] = 0;
  const auto first = reinterpret_cast<CUdeviceptr>(pinned);
  const CUdeviceptr second = first + 8;
  ASSERT_GOOD(launch(writing_, "spin", {second, 1}));
  ASSERT_GOOD(cuStreamWaitValue32(waiting_, first, 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_GOOD(cuStreamWriteValue32(waiting_, second, 1, 0));
  words[0] = 1;
  EXPECT_GOOD(cuStreamSynchronize(waiting_));
  EXPECT_GOOD(cuStreamSynchronize(writing_));
  EXPECT_EQ(words[1], 1U);
  EXPECT_GOOD(cuMemFreeHost(pinned));
}

TEST_F(WordWaits, EndBeforeKernelsWhenAnotherDeviceHasTheWord) {
  ASSERT_GOOD(cuCtxSetCurrent(retained(1)));
  CUdeviceptr there = 0;
  ASSERT_GOOD(cuMemAlloc(&there, 64));
  ASSERT_GOOD(cuCtxSetCurrent(retained(0)));
  expect_waits_end(there, false, one_call, {word_writer::operation, word_writer::copy, word_writer::host});
  EXPECT_GOOD(cuMemFree(there));
}

// Two threads queue all turns ahead. Each stream waits for its turn, counts, and lets the other stream have its turn.
TEST_F(WordWaits, LetTwoStreamsTakeTurns) {
  constexpr unsigned turns = 20;
  const CUcontext context = current();
  const CUdeviceptr counter = words_ + 16;
  const auto queue = [&](CUstream stream, CUdeviceptr own, CUdeviceptr others, unsigned first) {
    ASSERT_GOOD(cuCtxSetCurrent(context));
    for (unsigned turn = 1; turn <= turns; ++turn) {
      ASSERT_GOOD(cuStreamWaitValue32(stream, own, turn - first, CU_STREAM_WAIT_VALUE_GEQ));
      ASSERT_GOOD(launch(stream, "count", {counter}));
      ASSERT_GOOD(cuStreamWriteValue32(stream, others, turn, 0));
    }
  };
  std::thread other([&] { queue(writing_, words_ + 8, words_, 0); });
  queue(waiting_, words_, words_ + 8, 1);
  other.join();
  EXPECT_GOOD(cuStreamSynchronize(waiting_));
  EXPECT_GOOD(cuStreamSynchronize(writing_));
  EXPECT_EQ(value_at(counter), 2 * turns);
}

// The work that would have written the word is dropped.
TEST_F(WordWaits, EndWhenAKernelFaults) {
  ASSERT_GOOD(cuStreamWaitValue32(waiting_, words_, 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_GOOD(launch(waiting_, "count", {words_ + 8}));
  std::thread writer([&, context = current()] {
    EXPECT_GOOD(cuCtxSetCurrent(context));
    EXPECT_GOOD(launch(writing_, "fault", {}));
    cuStreamWriteValue32(writing_, words_, 1, 0);
  });
  EXPECT_NE(cuStreamSynchronize(waiting_), CUDA_SUCCESS);
  writer.join();
  EXPECT_NE(cuStreamQuery(waiting_), CUDA_SUCCESS);
  EXPECT_GOOD(cuDevicePrimaryCtxReset(0));
}

// The graph's memory is freed in the thread of the stream, in front of a kernel that may use all memory.
TEST_F(WordWaits, OfAGraphThatOwnsMemoryEndBeforeKernels) {
  CUgraph graph = nullptr;
  CUgraphNode made = nullptr;
  CUgraphExec exec = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory{};
  memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  memory.poolProps.location.id = 0;
  memory.bytesize = 1 << 20;
  ASSERT_GOOD(cuGraphCreate(&graph, 0));
  ASSERT_GOOD(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &memory));
  CUgraphNode freed = nullptr;
  ASSERT_GOOD(cuGraphAddMemFreeNode(&freed, graph, &made, 1, memory.dptr));
  ASSERT_GOOD(cuGraphInstantiate(&exec, graph, 0));
  ASSERT_GOOD(cuStreamWaitValue32(waiting_, words_, 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_GOOD(cuGraphLaunch(exec, waiting_));
  ASSERT_GOOD(cuGraphExecDestroy(exec));
  ASSERT_GOOD(cuGraphDestroy(graph));
  ASSERT_GOOD(launch(waiting_, "count", {words_ + 8}));
  ASSERT_GOOD(cuStreamWriteValue32(writing_, words_, 1, 0));
  EXPECT_GOOD(cuStreamSynchronize(waiting_));
  EXPECT_EQ(value_at(words_ + 8), 1U);
}

}  // namespace
