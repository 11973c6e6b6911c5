// Uses both interfaces of CUDA in one program: modules, contexts and memory of the driver with streams and kernels of
// the runtime, and the other way round. Also makes wrong calls, and prints their error codes.
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "check.h"

__global__ void scale(int* p, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= k;
}

static const char* const offset_text = R"(.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .global .align 4 .u32 bias = 5;
.visible .entry add_bias(.param .u64 to, .param .u32 count, .param .u32 more)
{
  .reg .pred %out;
  .reg .b32 %r<10>;
  .reg .b64 %a<4>;
  ld.param.u64 %a1, [to];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [more];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r5, %r3, %r4, %r5;
  setp.ge.u32 %out, %r5, %r1;
  @%out bra done;
  cvta.to.global.u64 %a1, %a1;
  mul.wide.u32 %a2, %r5, 4;
  add.u64 %a1, %a1, %a2;
  ld.global.u32 %r6, [%a1];
  ld.global.u32 %r7, [bias];
  {
    .param .b32 argument;
    .param .b32 doubled;
    st.param.b32 [argument], %r2;
    call.uni (doubled), twice, (argument);
    ld.param.b32 %r8, [doubled];
  }
  add.u32 %r6, %r6, %r7;
  add.u32 %r6, %r6, %r8;
  st.global.u32 [%a1], %r6;
done:
  ret;
}
)";
static const char* const twice_text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 value)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [value];
  shl.b32 %r1, %r1, 1;
  st.param.b32 [result], %r1;
  ret;
}
)";

static const char* name(CUresult code) {
  const char* text = nullptr;
  cuGetErrorName(code, &text);
  return text != nullptr ? text : "no such code";
}

#define MUST(call)                                                                                      \
  do {                                                                                                  \
    const CUresult must_code = (call);                                                                  \
    if (must_code != CUDA_SUCCESS) std::printf("%s: %s\n", #call, name(must_code)), std::exit(1); \
  } while (false)
#define TELL(call) std::printf("%s: %s\n", #call, name(call))

constexpr int n = 1000;

static void print(const char* what, CUdeviceptr p, int count = n) {
  std::vector<int> host(count);
  MUST(cuMemcpyDtoH(host.data(), p, count * sizeof(int)));
  long long sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<long long>(host[i]) * (i + 1);
  std::printf("%s: %d %d %d, %lld\n", what, host[0], host[1], host[count - 1], sum);
}

static void contexts() {
  CUcontext none = nullptr, primary = nullptr, own = nullptr, top = nullptr;
  CUdevice device = -1;
  TELL(cuCtxGetCurrent(&none));
  std::printf("no context: %d\n", none == nullptr);
  TELL(cuCtxGetDevice(&device));
  TELL(cuCtxSynchronize());
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  MUST(cuCtxGetCurrent(&top));
  MUST(cuDevicePrimaryCtxRetain(&primary, 0));
  std::printf("the runtime's context is the primary one: %d\n", top == primary);
  MUST(cuCtxCreate(&own, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, 0));
  unsigned flags = 0;
  MUST(cuCtxGetFlags(&flags));
  MUST(cuCtxGetCurrent(&top));
  std::printf("created: on top %d, flags %u\n", top == own, flags & CU_CTX_SCHED_MASK);
  MUST(cuCtxPopCurrent(&top));
  std::printf("popped: %d\n", top == own);
  MUST(cuCtxPushCurrent(own));
  MUST(cuCtxDestroy(own));
  MUST(cuCtxGetCurrent(&top));
  std::printf("destroyed: the primary one is on top %d\n", top == primary);
  unsigned state = 9;
  int active = 9;
  MUST(cuDevicePrimaryCtxGetState(0, &state, &active));
  std::printf("active: %d\n", active);
  MUST(cuDevicePrimaryCtxRelease(0));
}

static CUmodule linked() {
  char errors[2000] = "?", info[2000] = "?";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, (void*)sizeof errors, info, (void*)sizeof info};
  CUlinkState state = nullptr;
  MUST(cuLinkCreate(4, options, values, &state));
  MUST(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)offset_text, std::strlen(offset_text) + 1, "offset", 0, nullptr, nullptr));
  MUST(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)twice_text, std::strlen(twice_text) + 1, "twice", 0, nullptr, nullptr));
  void* image = nullptr;
  std::size_t bytes = 0;
  MUST(cuLinkComplete(state, &image, &bytes));
  const std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + bytes);
  MUST(cuLinkDestroy(state));
  CUmodule made = nullptr;
  MUST(cuModuleLoadData(&made, copy.data()));
  values[1] = (void*)sizeof errors;  // reset, because the first link has stored the lengths of its logs here
  values[3] = (void*)sizeof info;
  MUST(cuLinkCreate(4, options, values, &state));
  MUST(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)offset_text, std::strlen(offset_text) + 1, "offset", 0, nullptr, nullptr));
  const bool links_alone = cuLinkComplete(state, &image, &bytes) == CUDA_SUCCESS;
  std::printf("links without twice: %d, errors told: %d\n", links_alone, errors[0] != '\0');
  MUST(cuLinkDestroy(state));
  return made;
}

static void modules(CUstream stream) {
  CUmodule module = linked(), none = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr bias = 0, data = 0;
  std::size_t bytes = 0;
  TELL(cuModuleGetFunction(&function, module, "no_such"));
  MUST(cuModuleGetFunction(&function, module, "add_bias"));
  TELL(cuModuleGetGlobal(&bias, &bytes, module, "no_such"));
  MUST(cuModuleGetGlobal(&bias, &bytes, module, "bias"));
  std::printf("bias: %zu bytes\n", bytes);
  int* of_runtime = nullptr;
  CHECK(cudaMalloc(&of_runtime, n * sizeof(int)));
  data = reinterpret_cast<CUdeviceptr>(of_runtime);
  MUST(cuMemsetD32(data, 7, n));
  int count = n, more = 10;
  void* arguments[] = {&data, &count, &more};
  MUST(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
  scale<<<8, 128, 0, stream>>>(of_runtime, n, 3);
  struct {
    CUdeviceptr to;
    int count, more;
  } packed{data, n - 1, 100};
  std::size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  const int other = -6;
  MUST(cuMemcpyHtoDAsync(bias, &other, sizeof other, stream));
  MUST(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, nullptr, extra));
  CHECK(cudaStreamSynchronize(stream));
  print("both kernels", data);
  cudaFunction_t of_symbol = nullptr;
  CHECK(cudaGetFuncBySymbol(&of_symbol, reinterpret_cast<const void*>(scale)));
  int two = 2;
  void* again[] = {&data, &count, &two};
  MUST(cuLaunchKernel(of_symbol, 8, 1, 1, 128, 1, 1, 0, stream, again, nullptr));
  MUST(cuStreamSynchronize(stream));
  print("the runtime's kernel by the driver", data);
  TELL(cuLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
  TELL(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, stream, arguments, nullptr));
  TELL(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 1 << 24, stream, arguments, nullptr));
  std::printf("the runtime's last error: %d\n", cudaGetLastError());
  int threads = 0, shared = -1;
  MUST(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  MUST(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  std::printf("at most %d threads, %d bytes shared\n", threads, shared);
  char errors[2000] = "?";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, (void*)sizeof errors};
  TELL(cuModuleLoadDataEx(&none, ".version 7.0\n.target sm_70\n.address_size 64\n.entry e() { nonsense; }", 2, options, values));
  std::printf("error log: %d\n", errors[0] != '\0' && errors[0] != '?');
  TELL(cuModuleLoad(&none, "/no/such/file"));
  MUST(cuModuleUnload(module));
  TELL(cuMemFree(data + 4));
  MUST(cuMemFree(data));
  TELL(cuMemFree(data));
}

static void libraries(CUstream stream) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  std::string whole = twice_text;
  const std::string rest = offset_text;
  whole += rest.substr(rest.find(".visible .global"));
  MUST(cuLibraryLoadData(&library, whole.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cuLibraryGetKernel(&kernel, library, "add_bias"));
  TELL(cuLibraryGetKernel(&kernel, library, "bias"));
  unsigned kernels = 0;
  MUST(cuLibraryGetKernelCount(&kernels, library));
  MUST(cuKernelGetFunction(&function, kernel));
  const char* told = nullptr;
  MUST(cuKernelGetName(&told, kernel));
  std::size_t at = 0, size = 0;
  MUST(cuFuncGetParamInfo(function, 2, &at, &size));
  std::printf("%u kernel, %s, third parameter: %zu, %zu bytes\n", kernels, told, at, size);
  CUdeviceptr data = 0;
  MUST(cuMemAllocAsync(&data, n * sizeof(int), stream));
  MUST(cuMemsetD32Async(data, 1, n, stream));
  int count = n, more = 1;
  void* arguments[] = {&data, &count, &more};
  CUlaunchConfig config{};
  config.gridDimX = 10, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 100, config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  MUST(cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr));
  MUST(cuStreamSynchronize(stream));
  print("a library's kernel", data);
  MUST(cuMemFreeAsync(data, stream));
  MUST(cuLibraryUnload(library));
}

static void copies(CUstream stream) {
  CUdeviceptr rows = 0, base = 0;
  std::size_t pitch = 0, bytes = 0;
  TELL(cuMemAlloc(&rows, 0));
  MUST(cuMemAllocPitch(&rows, &pitch, 40, 6, 4));
  std::printf("pitch: %d\n", pitch >= 40 && pitch % 4 == 0);
  MUST(cuMemsetD2D32(rows, pitch, 0x01020304, 10, 6));
  MUST(cuMemsetD2D16(rows + 4, pitch, 0x5566, 4, 3));
  MUST(cuMemsetD2D8(rows + pitch, pitch, 0x77, 3, 2));
  TELL(cuMemsetD32(rows + 2, 0, 1));
  int host[8][12];
  std::memset(host, 0, sizeof host);
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  flat.srcDevice = rows;
  flat.srcPitch = pitch;
  flat.srcY = 1;
  flat.srcXInBytes = 4;
  flat.dstMemoryType = CU_MEMORYTYPE_HOST;
  flat.dstHost = host;
  flat.dstPitch = sizeof host[0];
  flat.dstY = 2;
  flat.dstXInBytes = 8;
  flat.WidthInBytes = 32;
  flat.Height = 5;
  MUST(cuMemcpy2D(&flat));
  std::printf("rows: %016llx\n", (unsigned long long)digest(host, sizeof host));
  flat.WidthInBytes = pitch + 4;
  TELL(cuMemcpy2D(&flat));
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 6, shape.Height = 5, shape.Depth = 4;
  shape.Format = CU_AD_FORMAT_SIGNED_INT32;
  shape.NumChannels = 2;
  CUarray array = nullptr;
  MUST(cuArray3DCreate(&array, &shape));
  CUDA_ARRAY3D_DESCRIPTOR same{};
  MUST(cuArray3DGetDescriptor(&same, array));
  std::printf("array: %zu %zu %zu, %d, %u\n", same.Width, same.Height, same.Depth, same.Format, same.NumChannels);
  std::vector<int> in(6 * 5 * 4 * 2), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * i);
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = in.data();
  box.srcPitch = 48, box.srcHeight = 5;
  box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box.dstArray = array;
  box.WidthInBytes = 48, box.Height = 5, box.Depth = 4;
  MUST(cuMemcpy3DAsync(&box, stream));
  box = {};
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = array;
  box.srcXInBytes = 8, box.srcY = 1, box.srcZ = 2;
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = out.data();
  box.dstPitch = 48, box.dstHeight = 5;
  box.WidthInBytes = 32, box.Height = 3, box.Depth = 2;
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemcpy3D(&box));
  std::printf("box: %016llx\n", (unsigned long long)digest(out.data(), out.size() * 4));
  MUST(cuArrayDestroy(array));
  MUST(cuMemGetAddressRange(&base, &bytes, rows + 50));
  std::printf("range: begins there %d, holds all rows %d\n", base == rows, bytes >= pitch * 6);
  unsigned type = 0, managed = 9;
  int ordinal = -1;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* told[] = {&type, &managed, &ordinal};
  MUST(cuPointerGetAttributes(3, asked, told, rows));
  std::printf("device memory: type %u, managed %u, device %d\n", type, managed, ordinal);
  MUST(cuPointerGetAttributes(3, asked, told, reinterpret_cast<CUdeviceptr>(host)));
  std::printf("ordinary memory: type %u, managed %u, device %d\n", type, managed, ordinal);
  TELL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(host)));
  void* pinned = nullptr;
  MUST(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(pinned)));
  std::printf("pinned memory: type %u\n", type);
  MUST(cuMemFreeHost(pinned));
  MUST(cuMemAllocManaged(&base, 4096, CU_MEM_ATTACH_GLOBAL));
  MUST(cuPointerGetAttributes(3, asked, told, base));
  std::printf("managed memory: managed %u\n", managed);
  MUST(cuMemFree(base));
  MUST(cuMemFree(rows));
}

static void graphs(CUstream stream) {
  CUdeviceptr data = 0;
  MUST(cuMemAlloc(&data, n * sizeof(int)));
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(cuMemsetD32Async(data, 2, n, stream));
  scale<<<8, 128, 0, stream>>>(reinterpret_cast<int*>(data), n, 5);
  CUgraph captured = nullptr, made = nullptr;
  MUST(cuStreamEndCapture(stream, &captured));
  std::size_t nodes = 0;
  MUST(cuGraphGetNodes(captured, nullptr, &nodes));
  CUgraphExec exec = nullptr;
  MUST(cuGraphInstantiate(&exec, captured, 0));
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("captured: %zu nodes\n", nodes);
  print("after the graph", data);
  MUST(cuGraphExecDestroy(exec));
  cudaFunction_t function = nullptr;
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(scale)));
  int count = n, factor = -3;
  void* arguments[] = {&data, &count, &factor};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = 8, kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = 128, kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = arguments;
  CUDA_MEMSET_NODE_PARAMS zeros{};
  zeros.dst = data, zeros.value = 9, zeros.elementSize = 4, zeros.width = 10, zeros.height = 1;
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  CUgraphNode first = nullptr, second = nullptr;
  MUST(cuGraphCreate(&made, 0));
  MUST(cuGraphAddMemsetNode(&first, made, nullptr, 0, &zeros, context));
  MUST(cuGraphAddKernelNode(&second, made, &first, 1, &kernel));
  CUgraphNodeType type;
  MUST(cuGraphNodeGetType(second, &type));
  MUST(cuGraphInstantiate(&exec, made, 0));
  MUST(cuGraphLaunch(exec, stream));
  factor = 2;
  MUST(cuGraphExecKernelNodeSetParams(exec, second, &kernel));
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("second node: type %d\n", type);
  print("by hand", data);
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(made));
  MUST(cuGraphDestroy(captured));
  MUST(cuMemFree(data));
}

static void events(CUstream stream) {
  cudaEvent_t begin = nullptr;
  CUevent end = nullptr;
  CHECK(cudaEventCreate(&begin));
  MUST(cuEventCreate(&end, CU_EVENT_DEFAULT));
  float milliseconds = -1;
  TELL(cuEventElapsedTime(&milliseconds, begin, end));
  MUST(cuEventRecord(begin, stream));
  int called = 0;
  MUST(cuStreamAddCallback(stream, [](CUstream, CUresult code, void* data) { *static_cast<int*>(data) += code == CUDA_SUCCESS; }, &called, 0));
  MUST(cuLaunchHostFunc(stream, [](void* data) { *static_cast<int*>(data) += 10; }, &called));
  CHECK(cudaEventRecord(end, stream));
  MUST(cuEventSynchronize(end));
  MUST(cuEventElapsedTime(&milliseconds, begin, end));
  std::printf("called: %d, time passes: %d\n", called, milliseconds >= 0);
  MUST(cuEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  TELL(cuInit(1));
  MUST(cuInit(0));
  TELL(cuDeviceGetName(nullptr, 0, 0));
  contexts();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  modules(stream);
  libraries(stream);
  copies(stream);
  graphs(stream);
  events(stream);
  CHECK(cudaStreamDestroy(stream));
  const char* sentence = nullptr;
  MUST(cuGetErrorString(CUDA_ERROR_INVALID_CONTEXT, &sentence));
  std::printf("%s\n", sentence);
  TELL(cuGetErrorString(static_cast<CUresult>(12345), &sentence));
}
