// The functions of CUDA's runtime library that the cases call, by CUDA's driver interface: NVIDIA's runtime library
// works only with NVIDIA's driver, and not with the stand-in of tests/interpose/gpu. As in NVIDIA's library, a
// program's calls of the runtime become calls of the driver.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

struct code {
  const void* image = nullptr;
  CUmodule module = nullptr;
};
struct named {
  code* in = nullptr;
  std::string name;
  CUfunction function = nullptr;
};

// Never destroyed, because programs call the runtime while they exit.
std::map<const void*, named>& symbols() {
  static auto* const all = new std::map<const void*, named>;
  return *all;
}

std::map<void**, named>& managed_variables() {
  static auto* const all = new std::map<void**, named>;
  return *all;
}

constexpr int most_devices = 2;
std::array<CUcontext, most_devices> contexts{};
thread_local int device = 0;
thread_local CUcontext set = nullptr;

// Makes the context of the thread's device current.
void enter() {
  static std::once_flag once;
  std::call_once(once, [] {
    cuInit(0);
    for (int n = most_devices - 1; n >= 0; --n) cuDevicePrimaryCtxRetain(&contexts.at(static_cast<std::size_t>(n)), n);
  });
  CUcontext const wanted = contexts.at(static_cast<std::size_t>(device));
  if (set != wanted) cuCtxSetCurrent(wanted);
  set = wanted;
}

cudaError_t result_of(CUresult result) { return static_cast<cudaError_t>(result); }

template <class Call>
cudaError_t entered(const Call& call) {
  enter();
  return result_of(call());
}

CUmodule module_of(code& its) {
  if (its.module == nullptr) cuModuleLoadData(&its.module, its.image);
  return its.module;
}

CUdeviceptr number(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }
CUstream handle(cudaStream_t s) { return reinterpret_cast<CUstream>(s); }
CUevent handle(cudaEvent_t e) { return reinterpret_cast<CUevent>(e); }

CUdeviceptr variable(const named& its) {
  CUdeviceptr found = 0;
  std::size_t bytes = 0;
  cuModuleGetGlobal(&found, &bytes, module_of(*its.in), its.name.c_str());
  return found;
}
CUdeviceptr variable(const void* symbol) { return variable(symbols().at(symbol)); }

struct call_configuration {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local call_configuration configured;

CUfunction function_of(const void* host) {
  named& its = symbols().at(host);
  if (its.function == nullptr) cuModuleGetFunction(&its.function, module_of(*its.in), its.name.c_str());
  return its.function;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's names
#define RUNTIME extern "C" __attribute__((visibility("default")))

RUNTIME void** __cudaRegisterFatBinary(void* wrapper) {
  auto* const made = new code{wrapper, nullptr};
  return reinterpret_cast<void**>(made);
}
RUNTIME void __cudaRegisterFatBinaryEnd(void**) {}
RUNTIME void __cudaUnregisterFatBinary(void**) {}
RUNTIME void __cudaRegisterFunction(void** in, const char* host, char*, const char* name, int, void*, void*, void*,
                                    void*, int*) {
  symbols()[host] = {reinterpret_cast<code*>(in), name, nullptr};
}
RUNTIME void __cudaRegisterVar(void** in, char* host, char*, const char* name, int, std::size_t, int, int) {
  symbols()[host] = {reinterpret_cast<code*>(in), name, nullptr};
}
// The stand-in's variables are in memory that CPU code can use.
RUNTIME void __cudaRegisterManagedVar(void** in, void** place, char*, const char* name, int, std::size_t, int, int) {
  managed_variables()[place] = {reinterpret_cast<code*>(in), name, nullptr};
}
RUNTIME char __cudaInitModule(void** in) {
  enter();
  for (auto& [place, its] : managed_variables())
    if (its.in == reinterpret_cast<code*>(in)) *place = reinterpret_cast<void*>(variable(its));
  return 1;
}
RUNTIME unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  configured = {grid, block, shared, stream};
  return 0;
}
RUNTIME cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configured.grid;
  *block = configured.block;
  *shared = configured.shared;
  std::memcpy(stream, &configured.stream, sizeof configured.stream);
  return cudaSuccess;
}
RUNTIME cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  enter();
  *kernel = reinterpret_cast<cudaKernel_t>(function_of(host));
  return cudaSuccess;
}
RUNTIME cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                       cudaStream_t stream) {
  return entered([&] {
    return cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          static_cast<unsigned>(shared), handle(stream), arguments, nullptr);
  });
}
RUNTIME cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                     cudaStream_t stream) {
  return entered([&] {
    return cuLaunchKernel(function_of(host), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                          static_cast<unsigned>(shared), handle(stream), arguments, nullptr);
  });
}
RUNTIME cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** arguments,
                                                std::size_t shared, cudaStream_t stream) {
  return entered([&] {
    return cuLaunchCooperativeKernel(function_of(host), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared), handle(stream), arguments);
  });
}

RUNTIME const char* cudaGetErrorString(cudaError_t) { return "an error of the driver"; }
RUNTIME const char* cudaGetErrorName(cudaError_t) { return "an error of the driver"; }
// Calls return their errors; none is kept.
RUNTIME cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
RUNTIME cudaError_t cudaGetLastError() { return cudaSuccess; }
RUNTIME cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
RUNTIME cudaError_t cudaGetDeviceCount(int* count) {
  return entered([&] { return cuDeviceGetCount(count); });
}
RUNTIME cudaError_t cudaSetDevice(int which) {
  int count = 0;
  if (cuDeviceGetCount(&count) != CUDA_SUCCESS || which >= count) return cudaErrorInvalidDevice;
  device = which;
  enter();
  return cudaSuccess;
}
RUNTIME cudaError_t cudaDeviceSynchronize() {
  return entered([] { return cuCtxSynchronize(); });
}
RUNTIME cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return entered([&] { return cuCtxEnablePeerAccess(contexts.at(static_cast<std::size_t>(peer)), 0); });
}
RUNTIME cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return entered([&] { return cuCtxDisablePeerAccess(contexts.at(static_cast<std::size_t>(peer))); });
}

RUNTIME cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  return entered([&] { return cuMemAlloc(reinterpret_cast<CUdeviceptr*>(made), bytes); });
}
RUNTIME cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t stream) {
  return entered([&] { return cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(made), bytes, handle(stream)); });
}
RUNTIME cudaError_t cudaFree(void* p) {
  return entered([&] { return cuMemFree(number(p)); });
}
RUNTIME cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return entered([&] { return cuMemFreeAsync(number(p), handle(stream)); });
}
RUNTIME cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned flags) {
  return entered([&] { return cuMemHostAlloc(made, bytes, flags); });
}
RUNTIME cudaError_t cudaFreeHost(void* p) {
  return entered([&] { return cuMemFreeHost(p); });
}
RUNTIME cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned flags) {
  return entered([&] { return cuMemHostRegister(p, bytes, flags); });
}
RUNTIME cudaError_t cudaHostUnregister(void* p) {
  return entered([&] { return cuMemHostUnregister(p); });
}
RUNTIME cudaError_t cudaHostGetDevicePointer(void** mapped, void* p, unsigned flags) {
  return entered([&] { return cuMemHostGetDevicePointer(reinterpret_cast<CUdeviceptr*>(mapped), p, flags); });
}
RUNTIME cudaError_t cudaMallocHost(void** made, std::size_t bytes) { return cudaHostAlloc(made, bytes, 0); }
RUNTIME cudaError_t cudaMallocManaged(void** made, std::size_t bytes, unsigned flags) {
  return entered([&] { return cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(made), bytes, flags); });
}
RUNTIME cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  enter();
  const CUdeviceptr found = variable(symbol);
  std::memcpy(address, &found, sizeof found);
  return cudaSuccess;
}

RUNTIME cudaError_t cudaMemset(void* p, int value, std::size_t count) {
  return entered([&] { return cuMemsetD8(number(p), static_cast<unsigned char>(value), count); });
}
RUNTIME cudaError_t cudaMemsetAsync(void* p, int value, std::size_t count, cudaStream_t stream) {
  return entered([&] { return cuMemsetD8Async(number(p), static_cast<unsigned char>(value), count, handle(stream)); });
}
RUNTIME cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return entered([&] {
    switch (kind) {
      case cudaMemcpyHostToDevice: return cuMemcpyHtoD(number(to), from, bytes);
      case cudaMemcpyDeviceToHost: return cuMemcpyDtoH(to, number(from), bytes);
      case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD(number(to), number(from), bytes);
      default: return cuMemcpy(number(to), number(from), bytes);
    }
  });
}
RUNTIME cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                    cudaStream_t stream) {
  return entered([&] {
    switch (kind) {
      case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(number(to), from, bytes, handle(stream));
      case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(to, number(from), bytes, handle(stream));
      case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(number(to), number(from), bytes, handle(stream));
      default: return cuMemcpyAsync(number(to), number(from), bytes, handle(stream));
    }
  });
}
RUNTIME cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                            cudaMemcpyKind, cudaStream_t stream) {
  return entered([&] { return cuMemcpyHtoDAsync(variable(symbol) + offset, from, bytes, handle(stream)); });
}
RUNTIME cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                              cudaMemcpyKind, cudaStream_t stream) {
  return entered([&] { return cuMemcpyDtoHAsync(to, variable(symbol) + offset, bytes, handle(stream)); });
}
RUNTIME cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                       cudaMemcpyKind) {
  return entered([&] { return cuMemcpyHtoD(variable(symbol) + offset, from, bytes); });
}
RUNTIME cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                         cudaMemcpyKind) {
  return entered([&] { return cuMemcpyDtoH(to, variable(symbol) + offset, bytes); });
}
RUNTIME cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                        cudaStream_t stream) {
  return entered([&] {
    return cuMemcpyPeerAsync(number(to), contexts.at(static_cast<std::size_t>(to_device)), number(from),
                             contexts.at(static_cast<std::size_t>(from_device)), bytes, handle(stream));
  });
}
RUNTIME cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                      std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_MEMCPY2D what{};
  what.srcMemoryType = kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  what.dstMemoryType = kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  what.srcHost = from;
  what.srcDevice = number(from);
  what.dstHost = to;
  what.dstDevice = number(to);
  what.srcPitch = from_pitch;
  what.dstPitch = to_pitch;
  what.WidthInBytes = width;
  what.Height = height;
  return entered([&] { return cuMemcpy2DAsync(&what, handle(stream)); });
}

RUNTIME cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return entered([&] { return cuStreamCreate(reinterpret_cast<CUstream*>(made), flags); });
}
RUNTIME cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return entered([&] { return cuStreamDestroy(handle(stream)); });
}
RUNTIME cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return entered([&] { return cuStreamSynchronize(handle(stream)); });
}
RUNTIME cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return entered([&] { return cuStreamQuery(handle(stream)); });
}
RUNTIME cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return entered([&] { return cuStreamWaitEvent(handle(stream), handle(event), flags); });
}
RUNTIME cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* argument,
                                          unsigned flags) {
  return entered(
      [&] { return cuStreamAddCallback(handle(stream), reinterpret_cast<CUstreamCallback>(call), argument, flags); });
}
RUNTIME cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* argument) {
  return entered([&] { return cuLaunchHostFunc(handle(stream), call, argument); });
}
RUNTIME cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  return entered([&] { return cuEventCreate(reinterpret_cast<CUevent*>(made), flags); });
}
RUNTIME cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return entered([&] { return cuEventDestroy(handle(event)); });
}
RUNTIME cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return entered([&] { return cuEventRecord(handle(event), handle(stream)); });
}
RUNTIME cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return entered([&] { return cuEventSynchronize(handle(event)); });
}

RUNTIME cudaError_t cudaGraphCreate(cudaGraph_t* made, unsigned flags) {
  return entered([&] { return cuGraphCreate(reinterpret_cast<CUgraph*>(made), flags); });
}
RUNTIME cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           std::size_t count, const cudaKernelNodeParams* what) {
  CUDA_KERNEL_NODE_PARAMS k{};
  enter();
  k.func = function_of(what->func);
  k.gridDimX = what->gridDim.x, k.gridDimY = what->gridDim.y, k.gridDimZ = what->gridDim.z;
  k.blockDimX = what->blockDim.x, k.blockDimY = what->blockDim.y, k.blockDimZ = what->blockDim.z;
  k.kernelParams = what->kernelParams;
  return result_of(cuGraphAddKernelNode(reinterpret_cast<CUgraphNode*>(made), reinterpret_cast<CUgraph>(graph),
                                        reinterpret_cast<const CUgraphNode*>(after), count, &k));
}
RUNTIME cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           std::size_t count, const cudaMemsetParams* what) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = number(what->dst);
  fill.value = what->value;
  fill.elementSize = what->elementSize;
  fill.width = what->width;
  fill.height = what->height;
  enter();
  return result_of(cuGraphAddMemsetNode(reinterpret_cast<CUgraphNode*>(made), reinterpret_cast<CUgraph>(graph),
                                        reinterpret_cast<const CUgraphNode*>(after), count, &fill, set));
}
RUNTIME cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after,
                                             std::size_t count, void* to, const void* from, std::size_t bytes,
                                             cudaMemcpyKind) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = number(from);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  enter();
  return result_of(cuGraphAddMemcpyNode(reinterpret_cast<CUgraphNode*>(made), reinterpret_cast<CUgraph>(graph),
                                        reinterpret_cast<const CUgraphNode*>(after), count, &copy, set));
}
RUNTIME cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after,
                                               std::size_t count, cudaGraph_t child) {
  return entered([&] {
    return cuGraphAddChildGraphNode(reinterpret_cast<CUgraphNode*>(made), reinterpret_cast<CUgraph>(graph),
                                    reinterpret_cast<const CUgraphNode*>(after), count,
                                    reinterpret_cast<CUgraph>(child));
  });
}
RUNTIME cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  return entered([&] {
    return cuGraphInstantiate(reinterpret_cast<CUgraphExec*>(made), reinterpret_cast<CUgraph>(graph), flags);
  });
}
RUNTIME cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  return entered([&] { return cuGraphLaunch(reinterpret_cast<CUgraphExec>(instance), handle(stream)); });
}
RUNTIME cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  return entered([&] { return cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(instance)); });
}
RUNTIME cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return entered([&] { return cuGraphDestroy(reinterpret_cast<CUgraph>(graph)); });
}
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
