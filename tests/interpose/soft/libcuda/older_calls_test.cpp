// Functions of earlier versions of CUDA in hpe's libcuda.so.1. Programs that were built with such a version find the
// functions by their old names.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"
#include "tests/temporary_folder.h"

namespace {

using namespace hpe::libcuda::test;

// tell() writes its second parameter, the size of its dynamic shared memory, and the sizes of its grid and block.
constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared_word = 5;
.visible .entry tell(.param .u64 out, .param .f32 value) {
  .reg .b32 %r<8>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %dynamic_smem_size;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %nctaid.y;
  mov.u32 %r5, %ntid.x;
  mov.u32 %r6, %ntid.y;
  mov.u32 %r7, %ntid.z;
  st.global.u32 [%rd1], %r1;
  st.global.u32 [%rd1+4], %r2;
  st.global.u32 [%rd1+8], %r3;
  st.global.u32 [%rd1+12], %r4;
  st.global.u32 [%rd1+16], %r5;
  st.global.u32 [%rd1+20], %r6;
  st.global.u32 [%rd1+24], %r7;
  ret;
}
)";

/// Returns the function with this exported name, for which cuda.h may have a macro with the name of a later version.
template <class Function>
Function* exported(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

class OlderCalls : public Queries {
 protected:
  using words = std::array<std::uint32_t, 7>;

  void SetUp() override {
    Queries::SetUp();
    ASSERT_GOOD(cuModuleLoadData(&module_, text));
    ASSERT_GOOD(cuModuleGetFunction(&tell_, module_, "tell"));
    ASSERT_GOOD(cuMemAlloc(&out_, sizeof(words)));
    ASSERT_GOOD(cuStreamCreate(&stream_, 0));
  }
  void TearDown() override {
    EXPECT_GOOD(cuStreamDestroy(stream_));
    EXPECT_GOOD(cuMemFree(out_));
    EXPECT_GOOD(cuModuleUnload(module_));
    Queries::TearDown();
  }

  // Returns what tell() has written since the last call.
  words told() {
    words result{};
    EXPECT_GOOD(cuCtxSynchronize());
    EXPECT_GOOD(cuMemcpyDtoH(result.data(), out_, sizeof result));
    EXPECT_GOOD(cuMemsetD8(out_, 0, sizeof result));
    return result;
  }
  static std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

  CUmodule module_ = nullptr;
  CUfunction tell_ = nullptr;
  CUdeviceptr out_ = 0;
  CUstream stream_ = nullptr;
};

TEST_F(OlderCalls, SettingsOfAFunctionApplyToItsLaunches) {
  ASSERT_GOOD(cuParamSetv(tell_, 0, &out_, sizeof out_));
  ASSERT_GOOD(cuParamSetf(tell_, 8, 2.5F));
  EXPECT_GOOD(cuLaunch(tell_));
  EXPECT_EQ(told(), (words{bits(2.5F), 0, 1, 1, 1, 1, 1})) << "a block of one thread is the default";
  ASSERT_GOOD(cuFuncSetSharedSize(tell_, 48));
  ASSERT_GOOD(cuFuncSetBlockShape(tell_, 4, 3, 2));
  EXPECT_GOOD(cuLaunch(tell_));
  EXPECT_EQ(told(), (words{bits(2.5F), 48, 1, 1, 4, 3, 2}));
  ASSERT_GOOD(cuParamSetf(tell_, 8, -1));
  EXPECT_GOOD(cuLaunchGrid(tell_, 3, 5));
  EXPECT_EQ(told(), (words{bits(-1), 48, 3, 5, 4, 3, 2}));
  EXPECT_GOOD(cuLaunchGridAsync(tell_, 6, 1, stream_));
  EXPECT_EQ(told(), (words{bits(-1), 48, 6, 1, 4, 3, 2}));

  for (const auto& [width, height] : {std::array{0, 1}, {1, 0}, {-1, 1}, {1, -1}}) {
    EXPECT_INVALID(cuLaunchGrid(tell_, width, height));
    EXPECT_INVALID(cuLaunchGridAsync(tell_, width, height, stream_));
  }
  for (const auto& [x, y, z] : {std::array{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}, {1, -1, 1}, {1, 1, -1}})
    EXPECT_INVALID(cuFuncSetBlockShape(tell_, x, y, z));
  EXPECT_GOOD(cuLaunch(tell_));
  EXPECT_EQ(told(), (words{bits(-1), 48, 1, 1, 4, 3, 2})) << "a shape that is refused changes nothing";
}

TEST_F(OlderCalls, ParametersHaveAtMost4096Bytes) {
  std::vector<char> bytes(4097);
  EXPECT_GOOD(cuParamSetv(tell_, 0, bytes.data(), 4096));
  EXPECT_INVALID(cuParamSetv(tell_, 0, bytes.data(), 4097));
  EXPECT_INVALID(cuParamSetv(tell_, 1, bytes.data(), 4096));
  EXPECT_INVALID(cuParamSetv(tell_, 0, nullptr, 4));
  EXPECT_GOOD(cuParamSeti(tell_, 4092, 7));
  EXPECT_INVALID(cuParamSeti(tell_, 4093, 7));
  EXPECT_INVALID(cuParamSeti(tell_, -1, 7));
  EXPECT_GOOD(cuParamSetSize(tell_, 4096));
  EXPECT_INVALID(cuParamSetSize(tell_, 4097));
  ASSERT_GOOD(cuParamSetv(tell_, 0, &out_, sizeof out_));
  ASSERT_GOOD(cuParamSetf(tell_, 8, 0.5F));
  ASSERT_GOOD(cuParamSetSize(tell_, 12));
  EXPECT_GOOD(cuLaunch(tell_));
  EXPECT_EQ(told()[0], bits(0.5F)) << "parameters within the new size remain";
  ASSERT_GOOD(cuParamSetSize(tell_, 8));
  EXPECT_INVALID(cuLaunch(tell_)) << "the second parameter is missing";
}

TEST_F(OlderCalls, NodesOfKernelsAreSet) {
  std::array<void*, 2> arguments{&out_, nullptr};
  float value = 1;
  arguments[1] = &value;
  CUDA_KERNEL_NODE_PARAMS_v1 what{};
  what.func = tell_;
  what.gridDimX = what.gridDimY = what.gridDimZ = what.blockDimX = what.blockDimY = what.blockDimZ = 1;
  what.kernelParams = arguments.data();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_GOOD(cuGraphCreate(&graph, 0));
  using adding = CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_KERNEL_NODE_PARAMS_v1*);
  using setting = CUresult(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
  using setting_in_exec = CUresult(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
  ASSERT_GOOD(exported<adding>("cuGraphAddKernelNode")(&node, graph, nullptr, 0, &what));
  value = 2;
  what.gridDimX = 3;
  what.blockDimY = 4;
  what.sharedMemBytes = 16;
  ASSERT_GOOD(exported<setting>("cuGraphKernelNodeSetParams")(node, &what));
  EXPECT_INVALID(exported<setting>("cuGraphKernelNodeSetParams")(node, nullptr));
  ASSERT_GOOD(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_GOOD(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(told(), (words{bits(2), 16, 3, 1, 1, 4, 1}));
  value = 3;
  what.gridDimY = 2;
  ASSERT_GOOD(exported<setting_in_exec>("cuGraphExecKernelNodeSetParams")(exec, node, &what));
  EXPECT_GOOD(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(told(), (words{bits(3), 16, 3, 2, 1, 4, 1}));
  EXPECT_GOOD(cuGraphExecDestroy(exec));
  EXPECT_GOOD(cuGraphDestroy(graph));
}

TEST_F(OlderCalls, NodesOfWordsAreSet) {
  CUstreamBatchMemOpParams one{};
  one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  one.writeValue.address = out_;
  one.writeValue.value = 1;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS what{current(), 1, &one, 0};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_GOOD(cuGraphCreate(&graph, 0));
  ASSERT_GOOD(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &what));
  one.writeValue.address = out_ + 4;
  one.writeValue.value = 6;
  ASSERT_GOOD(cuGraphBatchMemOpNodeSetParams(node, &what));
  EXPECT_INVALID(cuGraphBatchMemOpNodeSetParams(node, nullptr));
  CUDA_BATCH_MEM_OP_NODE_PARAMS set{};
  EXPECT_GOOD(cuGraphBatchMemOpNodeGetParams(node, &set));
  ASSERT_EQ(set.count, 1U);
  EXPECT_EQ(set.paramArray[0].writeValue.address, out_ + 4);
  ASSERT_GOOD(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_GOOD(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(told(), (words{0, 6, 0, 0, 0, 0, 0}));
  EXPECT_GOOD(cuGraphExecDestroy(exec));
  EXPECT_GOOD(cuGraphDestroy(graph));
}

TEST_F(OlderCalls, BatchesOfCopiesNameNoCopyThatFailed) {
  constexpr std::size_t size = 1000;
  const std::vector<unsigned char> bytes = this->bytes(size);
  CUdeviceptr from = 0, to = 0;
  ASSERT_GOOD(cuMemAlloc(&from, size));
  ASSERT_GOOD(cuMemAlloc(&to, size));
  ASSERT_GOOD(cuMemcpyHtoD(from, bytes.data(), size));
  ASSERT_GOOD(cuMemsetD8(to, 0, size));
  std::array<CUdeviceptr, 2> targets{to, to + 600}, sources{from + 10, from};
  std::array<std::size_t, 2> sizes{500, 400};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::size_t first = 0, wrong = 0;
  using batch = CUresult(CUdeviceptr*, CUdeviceptr*, std::size_t*, std::size_t, CUmemcpyAttributes*, std::size_t*,
                         std::size_t, std::size_t*, CUstream);
  const auto copies = exported<batch>("cuMemcpyBatchAsync");
  ASSERT_GOOD(copies(targets.data(), sources.data(), sizes.data(), 2, &attributes, &first, 1, &wrong, stream_));
  EXPECT_EQ(wrong, SIZE_MAX);
  EXPECT_GOOD(copies(targets.data(), sources.data(), sizes.data(), 2, &attributes, &first, 1, nullptr, stream_));

  CUDA_MEMCPY3D_BATCH_OP box{};
  box.src.type = box.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  box.src.op.ptr.ptr = from + 500;
  box.dst.op.ptr.ptr = to + 505;
  box.extent = {90, 1, 1};
  box.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  wrong = 0;
  using boxes = CUresult(std::size_t, CUDA_MEMCPY3D_BATCH_OP*, std::size_t*, unsigned long long, CUstream);
  ASSERT_GOOD(exported<boxes>("cuMemcpy3DBatchAsync")(1, &box, &wrong, 0, stream_));
  EXPECT_EQ(wrong, SIZE_MAX);
  std::vector<unsigned char> model(size), out(size);
  std::copy_n(bytes.begin() + 10, 500, model.begin());
  std::copy_n(bytes.begin(), 400, model.begin() + 600);
  std::copy_n(bytes.begin() + 500, 90, model.begin() + 505);
  EXPECT_GOOD(cuStreamSynchronize(stream_));
  EXPECT_GOOD(cuMemcpyDtoH(out.data(), to, size));
  EXPECT_EQ(out, model);
  EXPECT_GOOD(cuMemFree(from));
  EXPECT_GOOD(cuMemFree(to));
}

TEST_F(OlderCalls, AdviceNamesADeviceByItsNumber) {
  CUdeviceptr managed = 0;
  ASSERT_GOOD(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  const auto ask = [&](CUmem_range_attribute which) {
    int answer = 99;
    EXPECT_GOOD(cuMemRangeGetAttribute(&answer, sizeof answer, which, managed, 4096));
    return answer;
  };
  const auto advise = exported<CUresult(CUdeviceptr, std::size_t, CUmem_advise, CUdevice)>("cuMemAdvise");
  const auto prefetch = exported<CUresult(CUdeviceptr, std::size_t, CUdevice, CUstream)>("cuMemPrefetchAsync");
  for (const CUdevice device : {1, CU_DEVICE_CPU, 0}) {
    EXPECT_GOOD(advise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), device);
    EXPECT_GOOD(prefetch(managed, 4096, device, stream_));
    EXPECT_EQ(ask(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), device);
  }
  EXPECT_EQ(advise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_GOOD(cuStreamSynchronize(stream_));
  EXPECT_GOOD(cuMemFree(managed));
}

TEST_F(OlderCalls, ModulesAreLoadedFromFilesAndMemory) {
  const temporary_folder folder;
  const std::string file = folder / "kernels.ptx";
  std::ofstream(file) << text;
  CUlibrary library = nullptr;
  ASSERT_GOOD(cuLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr address = 0;
  std::size_t size = 0;
  ASSERT_GOOD(cuLibraryGetManaged(&address, &size, library, "shared_word"));
  EXPECT_EQ(size, 4U);
  std::uint32_t value = 0;
  EXPECT_GOOD(cuMemcpyDtoH(&value, address, sizeof value));
  EXPECT_EQ(value, 5U);
  EXPECT_EQ(cuLibraryGetManaged(&address, &size, library, "no_word"), CUDA_ERROR_NOT_FOUND);
  EXPECT_GOOD(cuLibraryUnload(library));
  EXPECT_EQ(cuLibraryLoadFromFile(&library, (folder / "none.ptx").c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_FILE_NOT_FOUND);

  CUmodule module = nullptr;
  ASSERT_GOOD(cuModuleLoadFatBinary(&module, text));
  CUfunction found = nullptr;
  EXPECT_GOOD(cuModuleGetFunction(&found, module, "tell"));
  EXPECT_GOOD(cuModuleUnload(module));
  EXPECT_INVALID(cuModuleLoadFatBinary(&module, nullptr));
}

TEST_F(OlderCalls, ClustersOfAFunctionThatFit) {
  CUlaunchAttribute shape{};
  shape.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  shape.value.clusterDim = {4, 1, 1};
  CUlaunchConfig how{};
  how.gridDimX = 4;
  how.blockDimX = 128;
  how.gridDimY = how.gridDimZ = how.blockDimY = how.blockDimZ = 1;
  how.attrs = &shape;
  how.numAttrs = 1;
  int clusters = 0, blocks = 0, processors = 0, most = 0;
  ASSERT_GOOD(cuOccupancyMaxActiveClusters(&clusters, tell_, &how));
  ASSERT_GOOD(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tell_, 128, 0));
  ASSERT_GOOD(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(clusters, blocks * processors / 4);
  ASSERT_GOOD(cuOccupancyMaxPotentialClusterSize(&most, tell_, &how));
  EXPECT_EQ(most, 8);
  EXPECT_INVALID(cuOccupancyMaxActiveClusters(nullptr, tell_, &how));
  EXPECT_INVALID(cuOccupancyMaxPotentialClusterSize(&most, tell_, nullptr));
}

TEST_F(Driver, HasNoPrivateTables) {
  const CUuuid any{};
  const void* table = this;
  EXPECT_EQ(cuGetExportTable(&table, &any), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
  EXPECT_EQ(cuGetExportTable(nullptr, &any), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
