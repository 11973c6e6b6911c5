// Devices, contexts, kernels, and words that streams write or wait for, in hpe's libcuda.so.1: what queries return
// after each operation, and which arguments are refused.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

// The versions of CUDA 10 to 12, whose names are macros for the versions of CUDA 13 in cuda.h.
extern "C" {
CUresult old_graph_instantiate(CUgraphExec*, CUgraph, CUgraphNode*, char*,
                               std::size_t) __asm__("cuGraphInstantiate_v2");
CUresult old_exec_update(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*) __asm__("cuGraphExecUpdate");
CUresult old_edges(CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*) __asm__("cuGraphGetEdges");
CUresult old_remove(CUgraph, const CUgraphNode*, const CUgraphNode*, std::size_t) __asm__("cuGraphRemoveDependencies");
CUresult old_add(CUgraph, const CUgraphNode*, const CUgraphNode*, std::size_t) __asm__("cuGraphAddDependencies");
CUresult old_before(CUgraphNode, CUgraphNode*, std::size_t*) __asm__("cuGraphNodeGetDependencies");
CUresult old_after(CUgraphNode, CUgraphNode*, std::size_t*) __asm__("cuGraphNodeGetDependentNodes");
}

namespace {

using namespace hpe::libcuda::test;

TEST_F(Queries, OfDevicesAgree) {
  for (int device = 0; device < 2; ++device) {
    CUdevice same = -1;
    EXPECT_GOOD(cuDeviceGet(&same, device));
    EXPECT_EQ(same, device);
    const auto attribute = [&](CUdevice_attribute which) {
      int value = -1;
      EXPECT_GOOD(cuDeviceGetAttribute(&value, which, device));
      return value;
    };
    CUdevprop p{};
    EXPECT_GOOD(cuDeviceGetProperties(&p, device));
    EXPECT_EQ(p.maxThreadsPerBlock, 1024);
    EXPECT_EQ(std::vector<int>(p.maxThreadsDim, p.maxThreadsDim + 3), (std::vector<int>{1024, 1024, 64}));
    EXPECT_EQ(p.maxGridSize[1], 65535);
    EXPECT_EQ(p.sharedMemPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    EXPECT_EQ(p.totalConstantMemory, 65536);
    EXPECT_EQ(p.SIMDWidth, 32);
    EXPECT_EQ(p.memPitch, attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
    EXPECT_EQ(p.regsPerBlock, 65536);
    EXPECT_EQ(p.clockRate, attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
    EXPECT_EQ(p.textureAlign, 512);
    int major = -1;
    int minor = -1;
    EXPECT_GOOD(cuDeviceComputeCapability(&major, &minor, device));
    EXPECT_EQ(major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    EXPECT_EQ(minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS), 1);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR), 1);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1), 0);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1), 0);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED), 0);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED), 0);
    const std::string whole = "hpe soft device " + std::to_string(device);
    for (const std::size_t room : {std::size_t{1}, std::size_t{5}, whole.size(), whole.size() + 1, whole.size() + 9}) {
      std::vector<char> name(room + 1, '#');  // the byte after the buffer must not change
      EXPECT_GOOD(cuDeviceGetName(name.data(), static_cast<int>(room), device));
      EXPECT_EQ(std::string(name.data()), whole.substr(0, room - 1));
      EXPECT_EQ(name.back(), '#');
    }
    char name[4];
    EXPECT_INVALID(cuDeviceGetName(name, 0, device));
    EXPECT_INVALID(cuDeviceGetName(nullptr, 4, device));
    CUuuid uuid{};
    EXPECT_GOOD(cuDeviceGetUuid(&uuid, device));
    EXPECT_EQ(std::string(uuid.bytes, 16), "hpe soft       " + std::to_string(device));
    std::size_t total = 0;
    EXPECT_GOOD(cuDeviceTotalMem(&total, device));
    EXPECT_GT(total, std::size_t{1} << 20);
    int affinity = 5;
    EXPECT_GOOD(cuDeviceGetExecAffinitySupport(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
    EXPECT_EQ(affinity, 0);
    std::size_t width = 0;
    EXPECT_GOOD(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, device));
    EXPECT_EQ(static_cast<int>(width), attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
    EXPECT_INVALID(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, device));
  }
  int value = 0;
  EXPECT_EQ(cuDeviceGet(&value, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&value, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_INVALID(cuDeviceGet(nullptr, 0));
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_INVALID(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  EXPECT_INVALID(cuDeviceComputeCapability(nullptr, &value, 0));
  EXPECT_INVALID(cuDeviceComputeCapability(&value, nullptr, 0));
  EXPECT_INVALID(cuDeviceGetProperties(nullptr, 0));
  EXPECT_INVALID(cuDeviceGetUuid(nullptr, 0));
  EXPECT_INVALID(cuDeviceTotalMem(nullptr, 0));
}

TEST_F(Queries, OfContextsFollowTheStackOfTheThread) {
  // Compares random pushes, pops and changes of contexts of both devices with a stack.
  std::vector<std::pair<CUcontext, int>> known;
  for (int i = 0; i < 4; ++i) {
    CUcontext made = nullptr;
    ASSERT_GOOD(cuCtxCreate(&made, nullptr, static_cast<unsigned>(i), i % 2));
    known.emplace_back(made, i % 2);
  }
  std::vector<std::size_t> stack{0, 1, 2, 3};
  for (int step = 0; step < 200; ++step) {
    const std::size_t which = below(4);
    switch (below(4)) {
      case 0:
        ASSERT_GOOD(cuCtxPushCurrent(known[which].first));
        stack.push_back(which);
        break;
      case 1: {
        if (stack.size() < 2) break;
        CUcontext popped = nullptr;
        ASSERT_GOOD(cuCtxPopCurrent(below(3) == 0 ? nullptr : &popped));
        ASSERT_TRUE(popped == nullptr || popped == known[stack.back()].first);
        stack.pop_back();
        break;
      }
      default: ASSERT_GOOD(cuCtxSetCurrent(known[which].first)); stack.back() = which;
    }
    ASSERT_EQ(current(), known[stack.back()].first);
    CUdevice device = -1;
    ASSERT_GOOD(cuCtxGetDevice(&device));
    ASSERT_EQ(device, known[stack.back()].second);
    ASSERT_GOOD(cuCtxGetDevice_v2(&device, known[which].first));
    ASSERT_EQ(device, known[which].second);
    unsigned flags = 99;
    ASSERT_GOOD(cuCtxGetFlags(&flags));
    ASSERT_EQ(flags, stack.back());
  }
  unsigned long long ids[4];
  for (int i = 0; i < 4; ++i) EXPECT_GOOD(cuCtxGetId(known[static_cast<std::size_t>(i)].first, &ids[i]));
  std::sort(ids, ids + 4);
  EXPECT_EQ(std::unique(ids, ids + 4), ids + 4);
  unsigned version = 0;
  EXPECT_GOOD(cuCtxGetApiVersion(nullptr, &version));
  EXPECT_EQ(version, 3020U);
  unsigned flags = 0;
  EXPECT_GOOD(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
  EXPECT_GOOD(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_BLOCKING_SYNC});
  EXPECT_INVALID(cuCtxSetFlags(1U << 20));
  CUcontext made = nullptr;
  EXPECT_INVALID(cuCtxCreate(&made, nullptr, 1U << 20, 0));
  EXPECT_INVALID(cuCtxCreate(nullptr, nullptr, 0, 0));
  EXPECT_EQ(cuCtxCreate(&made, nullptr, 0, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_GOOD(cuCtxSynchronize_v2(known[1].first));
  EXPECT_GOOD(cuCtxSynchronize_v2(nullptr));
  CUstream stream = nullptr;
  EXPECT_GOOD(cuStreamCreate(&stream, 0));
  CUcontext of_stream = nullptr;
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(1);
  EXPECT_GOOD(cuStreamGetCtx_v2(stream, &of_stream, &green));
  EXPECT_EQ(of_stream, current());
  EXPECT_EQ(green, nullptr);
  EXPECT_GOOD(cuCtxPushCurrent(known[known[stack.back()].second == 0 ? 1 : 0].first));  // a context of the other device
  EXPECT_GOOD(cuStreamGetCtx(stream, &of_stream));
  EXPECT_NE(of_stream, current());
  EXPECT_INVALID(cuStreamGetCtx(stream, nullptr));
  EXPECT_GOOD(cuStreamDestroy(stream));
  for (const auto& [context, device] : known) EXPECT_GOOD(cuCtxDetach(context));
  EXPECT_EQ(cuCtxPushCurrent(known[0].first), CUDA_ERROR_INVALID_CONTEXT);
  while (current() != nullptr) EXPECT_GOOD(cuCtxPopCurrent(nullptr));
  EXPECT_EQ(cuCtxPopCurrent(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxGetFlags(&flags), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext const primary = retained(1);
  EXPECT_EQ(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
  int active = -1;
  EXPECT_GOOD(cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_YIELD));
  EXPECT_INVALID(cuDevicePrimaryCtxSetFlags(1, 1U << 20));
  EXPECT_GOOD(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_YIELD});
  EXPECT_EQ(active, 1);
  EXPECT_GOOD(cuDevicePrimaryCtxRelease(1));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_GOOD(cuDevicePrimaryCtxGetState(1, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_INVALID(cuDevicePrimaryCtxGetState(1, nullptr, &active));
  EXPECT_INVALID(cuDevicePrimaryCtxGetState(1, &flags, nullptr));
  EXPECT_INVALID(cuDevicePrimaryCtxRetain(nullptr, 1));
}

constexpr const char* kernels = R"(.version 7.8
.target sm_75
.address_size 64
.global .align 4 .u32 variable = 11;
.visible .entry plain(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry bounded() .maxntid 200, 1, 1 {
  .shared .align 4 .b8 room[1000];
  .local .align 8 .b8 own[24];
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u32 %r1, 1;
  st.shared.u32 [room], %r1;
  st.local.u32 [own], %r1;
  ret;
}
)";

TEST_F(Queries, OfKernelsTellWhatTheirCodeSays) {
  CUmodule module = nullptr;
  ASSERT_GOOD(cuModuleLoadData(&module, kernels));
  CUfunction plain = nullptr;
  CUfunction bounded = nullptr;
  ASSERT_GOOD(cuModuleGetFunction(&plain, module, "plain"));
  ASSERT_GOOD(cuModuleGetFunction(&bounded, module, "bounded"));
  const auto ask = [&](CUfunction of, CUfunction_attribute which) {
    int value = -1;
    int same = -2;
    EXPECT_GOOD(cuFuncGetAttribute(&value, which, of));
    EXPECT_GOOD(cuKernelGetAttribute(&same, which, reinterpret_cast<CUkernel>(of), 0));
    EXPECT_EQ(value, same);
    return value;
  };
  EXPECT_EQ(ask(plain, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 200);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1000);
  EXPECT_EQ(ask(plain, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
  EXPECT_GE(ask(bounded, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 24);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 0);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_NUM_REGS), 32);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_PTX_VERSION), 75);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 75);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA), 0);
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), (48 << 10) - 1000);
  for (const auto none :
       {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE})
    EXPECT_EQ(ask(bounded, none), 0) << none;
  int n = 1;
  for (const auto each :
       {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}) {
    const int value = each == CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE ? 2
                      : each == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES      ? 100 << 10
                                                                                     : ++n;
    EXPECT_GOOD(cuKernelSetAttribute(each, value, reinterpret_cast<CUkernel>(bounded), 1));
    EXPECT_EQ(ask(bounded, each), value) << each;
    EXPECT_NE(ask(plain, each), value) << each;
  }
  EXPECT_GOOD(cuFuncSetAttribute(bounded, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_EQ(ask(bounded, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
  EXPECT_INVALID(cuFuncSetAttribute(bounded, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2));
  EXPECT_EQ(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 1,
                                 reinterpret_cast<CUkernel>(bounded), 2),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_INVALID(cuFuncGetAttribute(&n, static_cast<CUfunction_attribute>(99), plain));
  EXPECT_INVALID(cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, plain));

  CUmodule owner = nullptr;
  EXPECT_GOOD(cuFuncGetModule(&owner, plain));
  EXPECT_EQ(owner, module);
  CUlibrary library = nullptr;
  EXPECT_GOOD(cuKernelGetLibrary(&library, reinterpret_cast<CUkernel>(plain)));
  EXPECT_EQ(static_cast<void*>(library), static_cast<void*>(module));
  EXPECT_GOOD(cuLibraryGetModule(&owner, library));
  EXPECT_EQ(owner, module);
  CUfunctionLoadingState state{};
  EXPECT_GOOD(cuFuncIsLoaded(&state, plain));
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
  EXPECT_GOOD(cuFuncLoad(plain));
  EXPECT_GOOD(cuKernelSetCacheConfig(reinterpret_cast<CUkernel>(plain), CU_FUNC_CACHE_PREFER_L1, 0));
  CUmoduleLoadingMode mode{};
  EXPECT_GOOD(cuModuleGetLoadingMode(&mode));
  EXPECT_EQ(mode, CU_MODULE_EAGER_LOADING);
  std::array<CUkernel, 3> all{};
  EXPECT_GOOD(cuLibraryEnumerateKernels(all.data(), 1, library));
  EXPECT_NE(all[0], nullptr);
  EXPECT_EQ(all[1], nullptr);
  EXPECT_GOOD(cuLibraryEnumerateKernels(all.data(), 3, library));
  EXPECT_NE(all[1], nullptr);
  EXPECT_EQ(all[2], nullptr);
  EXPECT_INVALID(cuLibraryEnumerateKernels(nullptr, 1, library));
  unsigned count = 0;
  EXPECT_GOOD(cuLibraryGetKernelCount(&count, library));
  EXPECT_EQ(count, 2U);
  CUdeviceptr address = 0;
  std::size_t size = 0;
  EXPECT_GOOD(cuModuleGetGlobal(&address, &size, module, "variable"));
  EXPECT_EQ(size, 4U);
  unsigned value = 0;
  EXPECT_GOOD(cuMemcpyDtoH(&value, address, 4));
  EXPECT_EQ(value, 11U);
  EXPECT_GOOD(cuModuleGetGlobal(nullptr, &size, module, "variable"));
  EXPECT_INVALID(cuModuleGetGlobal(nullptr, nullptr, module, "variable"));
  EXPECT_EQ(cuModuleGetGlobal(&address, &size, module, "other"), CUDA_ERROR_NOT_FOUND);
  CUfunction none = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&none, module, "other"), CUDA_ERROR_NOT_FOUND);
  EXPECT_INVALID(cuModuleGetFunction(&none, module, ""));
  EXPECT_INVALID(cuModuleGetFunction(&none, module, nullptr));
  EXPECT_INVALID(cuModuleGetFunction(nullptr, module, "plain"));
  EXPECT_INVALID(cuModuleLoadData(nullptr, kernels));

  // A multiprocessor runs its maximum of 2048 threads with the largest block size that divides 2048.
  int grid = 0;
  int block = 0;
  int processors = 0;
  EXPECT_GOOD(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 2 * processors);
  EXPECT_GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, nullptr, 0, 512));
  EXPECT_EQ(block, 512);
  EXPECT_EQ(grid, 4 * processors);
  EXPECT_GOOD(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, nullptr, 0, 700));
  EXPECT_EQ(block, 512);  // three blocks of 672 threads would be only 2016 threads
  EXPECT_EQ(grid, 4 * processors);
  EXPECT_GOOD(cuOccupancyMaxPotentialBlockSizeWithFlags(
      &grid, &block, plain, [](int threads) { return std::size_t(threads) * 227; }, 0, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, processors);
  EXPECT_INVALID(cuOccupancyMaxPotentialBlockSize(nullptr, &block, plain, nullptr, 0, 0));
  EXPECT_INVALID(cuOccupancyMaxPotentialBlockSize(&grid, nullptr, plain, nullptr, 0, 0));
  EXPECT_INVALID(cuOccupancyMaxPotentialBlockSize(&grid, &block, plain, nullptr, 1 << 20, 0));

  // Graph nodes describe launches with the driver's structure.
  ASSERT_GOOD(cuMemAlloc(&address, 64));
  value = 42;
  void* arguments[] = {&address, &value};
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = plain;
  node.gridDimX = 1;
  node.gridDimY = 2;
  node.gridDimZ = 3;
  node.blockDimX = 4;
  node.blockDimY = 5;
  node.blockDimZ = 6;
  node.sharedMemBytes = 7;
  node.kernelParams = arguments;
  CUgraph graph = nullptr;
  ASSERT_GOOD(cuGraphCreate(&graph, 0));
  CUgraphNode made = nullptr;
  ASSERT_GOOD(cuGraphAddKernelNode_v2(&made, graph, nullptr, 0, &node));
  CUDA_KERNEL_NODE_PARAMS told{};
  ASSERT_GOOD(cuGraphKernelNodeGetParams_v2(made, &told));
  EXPECT_EQ(told.func, plain);
  EXPECT_EQ((std::array{told.gridDimX, told.gridDimY, told.gridDimZ, told.blockDimX, told.blockDimY, told.blockDimZ,
                        told.sharedMemBytes}),
            (std::array{1U, 2U, 3U, 4U, 5U, 6U, 7U}));
  const auto run = [&](CUgraphExec exec) {
    EXPECT_GOOD(cuGraphLaunch(exec, nullptr));
    EXPECT_GOOD(cuCtxSynchronize());
    unsigned out = 0;
    EXPECT_GOOD(cuMemcpyDtoH(&out, address, 4));
    return out;
  };
  CUgraphExec exec = nullptr;
  CUgraphNode wrong = reinterpret_cast<CUgraphNode>(1);
  char log[4] = "###";
  ASSERT_GOOD(old_graph_instantiate(&exec, graph, &wrong, log, 4));
  EXPECT_EQ(wrong, nullptr);
  EXPECT_EQ(log[0], '\0');
  EXPECT_EQ(run(exec), 42U);
  value = 43;
  ASSERT_GOOD(cuGraphExecKernelNodeSetParams_v2(exec, made, &node));
  EXPECT_EQ(run(exec), 43U);
  value = 44;
  ASSERT_GOOD(cuGraphKernelNodeSetParams_v2(made, &node));
  EXPECT_EQ(run(exec), 43U);
  CUgraphExecUpdateResult result{};
  ASSERT_GOOD(old_exec_update(exec, graph, &wrong, &result));
  EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(run(exec), 44U);
  CUgraphNodeParams general{};
  general.type = CU_GRAPH_NODE_TYPE_KERNEL;
  general.kernel.func = plain;
  general.kernel.gridDimX = general.kernel.gridDimY = general.kernel.gridDimZ = 1;
  general.kernel.blockDimX = general.kernel.blockDimY = general.kernel.blockDimZ = 1;
  general.kernel.kernelParams = arguments;
  value = 45;
  ASSERT_GOOD(cuGraphExecNodeSetParams(exec, made, &general));
  EXPECT_EQ(run(exec), 45U);
  value = 46;
  ASSERT_GOOD(cuGraphNodeSetParams(made, &general));
  ASSERT_GOOD(cuGraphKernelNodeGetParams_v2(made, &told));
  EXPECT_EQ(told.gridDimY, 1U);
  // Adds a memset after the kernel, and a copy of the memset's word after the memset.
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = address + 4;
  set.elementSize = 4;
  set.width = 1;
  set.height = 1;
  set.value = 9;
  CUgraphNode second = nullptr;
  ASSERT_GOOD(cuGraphAddMemsetNode(&second, graph, &made, 1, &set, current()));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address + 4;
  copy.dstDevice = address;
  copy.srcPitch = copy.dstPitch = 4;
  copy.srcHeight = copy.dstHeight = 1;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  CUgraphNode third = nullptr;
  ASSERT_GOOD(cuGraphAddMemcpyNode(&third, graph, &second, 1, &copy, current()));
  CUDA_MEMCPY3D same{};
  ASSERT_GOOD(cuGraphMemcpyNodeGetParams(third, &same));
  EXPECT_EQ(std::tuple(same.srcDevice, same.dstDevice, same.srcPitch, same.dstHeight, same.WidthInBytes, same.Height,
                       same.Depth),
            std::tuple(address + 4, address, 4U, 1U, 4U, 1U, 1U));
  EXPECT_GOOD(cuGraphExecDestroy(exec));
  ASSERT_GOOD(old_graph_instantiate(&exec, graph, nullptr, nullptr, 0));
  EXPECT_EQ(run(exec), 9U);
  set.value = 10;
  ASSERT_GOOD(cuGraphExecMemsetNodeSetParams(exec, second, &set, current()));
  EXPECT_EQ(run(exec), 10U);
  copy.WidthInBytes = 2;
  ASSERT_GOOD(cuGraphExecMemcpyNodeSetParams(exec, third, &copy, current()));
  copy.WidthInBytes = 1;
  ASSERT_GOOD(cuGraphMemcpyNodeSetParams(third, &copy));
  ASSERT_GOOD(cuGraphMemcpyNodeGetParams(third, &same));
  EXPECT_EQ(same.WidthInBytes, 1U);
  value = 0xabcdef;
  ASSERT_GOOD(cuGraphExecKernelNodeSetParams_v2(exec, made, &node));
  EXPECT_EQ(run(exec), 0xab000aU);
  std::size_t number = 0;
  EXPECT_GOOD(old_edges(graph, nullptr, nullptr, &number));
  EXPECT_EQ(number, 2U);
  EXPECT_GOOD(old_remove(graph, &made, &second, 1));
  EXPECT_GOOD(old_before(second, nullptr, &number));
  EXPECT_EQ(number, 0U);
  EXPECT_GOOD(old_after(second, nullptr, &number));
  EXPECT_EQ(number, 1U);
  EXPECT_GOOD(old_add(graph, &made, &third, 1));
  EXPECT_GOOD(old_before(third, nullptr, &number));
  EXPECT_EQ(number, 2U);
  EXPECT_GOOD(cuGraphExecDestroy(exec));
  EXPECT_GOOD(cuGraphDestroy(graph));
  EXPECT_GOOD(cuMemFree(address));
  EXPECT_GOOD(cuModuleUnload(module));
}

TEST_F(Queries, WordsAreComparedAsTheirFlagsSay) {
  CUdeviceptr words = 0;
  ASSERT_GOOD(cuMemAlloc(&words, 64));
  CUstream stream = nullptr;
  ASSERT_GOOD(cuStreamCreate(&stream, 0));
  // The value in memory, the value for which the stream waits, the comparison, and whether the words have 64 bits
  // (otherwise 32). All comparisons are true; if one were false, the stream would keep waiting.
  struct test_case {
    std::uint64_t is, wanted;
    unsigned flags;
    bool wide;
  };
  const std::uint64_t top = std::uint64_t{1} << 63;
  for (const auto& each :
       {test_case{5, 5, CU_STREAM_WAIT_VALUE_GEQ, false}, test_case{6, 5, CU_STREAM_WAIT_VALUE_GEQ, false},
        test_case{1, 0xfffffff0, CU_STREAM_WAIT_VALUE_GEQ, false}, test_case{5, 5, CU_STREAM_WAIT_VALUE_EQ, false},
        test_case{6, 2, CU_STREAM_WAIT_VALUE_AND, false},
        test_case{0xf, 0xfffffff0 - 1, CU_STREAM_WAIT_VALUE_NOR, false},
        test_case{1, ~0ULL, CU_STREAM_WAIT_VALUE_GEQ, true}, test_case{top, top, CU_STREAM_WAIT_VALUE_EQ, true},
        test_case{top, top | 1, CU_STREAM_WAIT_VALUE_AND, true}, test_case{~top, 0, CU_STREAM_WAIT_VALUE_NOR, true}}) {
    const auto narrow = static_cast<cuuint32_t>(each.wanted);
    if (each.wide) {
      ASSERT_GOOD(cuStreamWriteValue64_v2(stream, words + 8, each.is, 0));
      ASSERT_GOOD(cuStreamWaitValue64_v2(stream, words + 8, each.wanted, each.flags));
    } else {
      ASSERT_GOOD(cuStreamWriteValue32_v2(stream, words + 12, 77, 0));  // the next word must not change
      ASSERT_GOOD(cuStreamWriteValue32_v2(stream, words + 8, static_cast<cuuint32_t>(each.is), 0));
      ASSERT_GOOD(cuStreamWaitValue32_v2(stream, words + 8, narrow, each.flags));
    }
    ASSERT_GOOD(cuStreamSynchronize(stream));
    cuuint32_t pair[2];
    ASSERT_GOOD(cuMemcpyDtoH(pair, words + 8, 8));
    EXPECT_EQ(pair[0], static_cast<cuuint32_t>(each.is));
    EXPECT_EQ(pair[1], each.wide ? static_cast<cuuint32_t>(each.is >> 32) : 77U);
  }
  std::vector<CUstreamBatchMemOpParams> list(257);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    list[i].writeValue.address = words;
    list[i].writeValue.value = static_cast<cuuint32_t>(i);
  }
  EXPECT_GOOD(cuStreamBatchMemOp_v2(stream, 256, list.data(), 0));
  EXPECT_INVALID(cuStreamBatchMemOp_v2(stream, 257, list.data(), 0));
  EXPECT_INVALID(cuStreamBatchMemOp_v2(stream, 0, list.data(), 0));
  EXPECT_INVALID(cuStreamBatchMemOp_v2(stream, 1, nullptr, 0));
  EXPECT_INVALID(cuStreamBatchMemOp_v2(stream, 1, list.data(), 1));
  ASSERT_GOOD(cuStreamSynchronize(stream));
  cuuint32_t last = 0;
  ASSERT_GOOD(cuMemcpyDtoH(&last, words, 4));
  EXPECT_EQ(last, 255U);
  EXPECT_INVALID(cuStreamWriteValue32_v2(stream, words + 2, 1, 0));
  EXPECT_INVALID(cuStreamWriteValue64_v2(stream, words + 4, 1, 0));
  EXPECT_INVALID(cuStreamWriteValue32_v2(stream, words, 1, 2));
  EXPECT_INVALID(cuStreamWaitValue32_v2(stream, words, 1, 8));
  list[0].operation = CU_STREAM_MEM_OP_BARRIER;
  list[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  EXPECT_GOOD(cuStreamBatchMemOp_v2(stream, 2, list.data(), 0));
  list[0].operation = static_cast<CUstreamBatchMemOpType>(77);
  EXPECT_INVALID(cuStreamBatchMemOp_v2(stream, 1, list.data(), 0));
  EXPECT_GOOD(cuStreamDestroy(stream));
  EXPECT_GOOD(cuMemFree(words));
}

}  // namespace
