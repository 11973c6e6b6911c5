// A program for CUDA 12: it is linked with libcudart.so.12, and calls CUDA 12's versions of the functions that CUDA 13
// changed. It declares these versions itself, so that the tests do not need a CUDA 12 toolkit.

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/interpose/programs/check.h"

struct guarded {  // a buffer for a result, and words after it that must not be written
  unsigned char answer[1032];
  std::uint64_t guard[16];
};

struct attributes12 {
  cudaMemoryType type;
  int device;
  void* device_pointer;
  void* host_pointer;
  std::uint64_t guard[8];
};

struct launch12 {
  const void* function;
  dim3 grid, block;
  void** arguments;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

#define CUDA12(name, label, ...) extern "C" cudaError_t name(__VA_ARGS__) __asm__(label)
CUDA12(add_dependencies12, "cudaGraphAddDependencies", cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
       std::size_t);
CUDA12(add_dependencies12_v2, "cudaGraphAddDependencies_v2", cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
       const cudaGraphEdgeData*, std::size_t);
CUDA12(advise12, "cudaMemAdvise", const void*, std::size_t, cudaMemoryAdvise, int);
CUDA12(attributes_of12, "cudaPointerGetAttributes", attributes12*, const void*);
CUDA12(capture_info12, "cudaStreamGetCaptureInfo_v2", cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
       cudaGraph_t*, const cudaGraphNode_t**, std::size_t*);
CUDA12(choose12, "cudaChooseDevice", int*, const void*);
CUDA12(create_texture12, "cudaCreateTextureObject", cudaTextureObject_t*, const void*, const cudaTextureDesc*, const void*);
CUDA12(dependencies12, "cudaGraphNodeGetDependencies", cudaGraphNode_t, cudaGraphNode_t*, std::size_t*);
CUDA12(edges12, "cudaGraphGetEdges", cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, std::size_t*);
CUDA12(elapsed12, "cudaEventElapsedTime_v2", float*, cudaEvent_t, cudaEvent_t);
CUDA12(launch_on_devices12, "cudaLaunchCooperativeKernelMultiDevice", const launch12*, unsigned, unsigned);
CUDA12(prefetch12, "cudaMemPrefetchAsync", const void*, std::size_t, int, cudaStream_t);
CUDA12(properties11, "cudaGetDeviceProperties", void*, int);
CUDA12(properties12, "cudaGetDeviceProperties_v2", void*, int);
CUDA12(resource_of12, "cudaGetTextureObjectResourceDesc", void*, cudaTextureObject_t);
CUDA12(synchronize12, "cudaThreadSynchronize", void);
CUDA12(version12, "cudaRuntimeGetVersion", int*);

__managed__ int managed[1000];
__device__ int variable = 5;

__global__ void fill(int* out, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * value + variable;
}

__global__ void look_up(cudaTextureObject_t texture, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(texture, i);
}

int wrong = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}
#define EXPECT(condition) expect(condition, #condition)

template <class T>
T member(const guarded& structure, std::size_t at) {
  T value;
  std::memcpy(&value, structure.answer + at, sizeof value);
  return value;
}

void structures() {
  int version = 0;
  CHECK(version12(&version));
  EXPECT(version >= 12000 && version < 13000);
  guarded properties;
  std::memset(&properties, 0xee, sizeof properties);
  const guarded before = properties;
  CHECK(properties12(&properties, 1));
  EXPECT(std::memcmp(properties.guard, before.guard, sizeof before.guard) == 0);
  EXPECT(std::strcmp(reinterpret_cast<char*>(properties.answer), "hpe soft device 1") == 0);
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, 1));
    return value;
  };
  guarded eleven = before;
  constexpr std::size_t bytes_of_cuda11 = 728;
  CHECK(properties11(&eleven, 1));
  EXPECT(std::memcmp(&eleven, &properties, bytes_of_cuda11) == 0);
  EXPECT(std::memcmp(reinterpret_cast<char*>(&eleven) + bytes_of_cuda11, reinterpret_cast<const char*>(&before) + bytes_of_cuda11,
                     sizeof before - bytes_of_cuda11) == 0);
  EXPECT(member<std::size_t>(properties, 288) >= 1 << 20);  // totalGlobalMem
  EXPECT(member<int>(properties, 308) == 32);               // warpSize
  EXPECT(member<int>(properties, 320) == 1024);             // maxThreadsPerBlock
  EXPECT(member<int>(properties, 336) == attribute(cudaDevAttrMaxGridDimX));
  EXPECT(member<int>(properties, 348) == attribute(cudaDevAttrClockRate));
  EXPECT(member<std::size_t>(properties, 352) == 65536);  // totalConstMem
  EXPECT(member<int>(properties, 360) == 9);              // major
  EXPECT(member<int>(properties, 384) == 1);              // deviceOverlap
  EXPECT(member<int>(properties, 388) == attribute(cudaDevAttrMultiProcessorCount));
  EXPECT(member<int>(properties, 400) == 1);  // canMapHostMemory
  EXPECT(member<int>(properties, 404) == cudaComputeModeDefault);
  EXPECT(member<int>(properties, 420) == attribute(cudaDevAttrMaxTexture2DWidth));
  EXPECT(member<std::size_t>(properties, 568) == 512);  // surfaceAlignment
  EXPECT(member<int>(properties, 584) == 1);            // pciBusID
  EXPECT(member<int>(properties, 608) == attribute(cudaDevAttrMemoryClockRate));
  EXPECT(member<int>(properties, 612) == attribute(cudaDevAttrGlobalMemoryBusWidth));
  EXPECT(member<std::size_t>(properties, 640) == 228 << 10);  // sharedMemPerMultiprocessor
  EXPECT(member<int>(properties, 688) == 1);                  // cooperativeLaunch
  EXPECT(member<std::size_t>(properties, 696) == 227 << 10);  // sharedMemPerBlockOptin
  EXPECT(member<int>(properties, 768) == attribute(cudaDevAttrIpcEventSupport));
  int chosen = -1;
  CHECK(choose12(&chosen, &properties));
  EXPECT(chosen == 0 || chosen == 1);
  EXPECT(properties12(nullptr, 0) == cudaErrorInvalidValue);
  EXPECT(properties12(&properties, 99) == cudaErrorInvalidDevice);
  cudaGetLastError();
}

void memory(int* device) {
  attributes12 about;
  std::memset(&about, 0xee, sizeof about);
  const attributes12 before = about;
  CHECK(attributes_of12(&about, device + 3));
  EXPECT(about.type == cudaMemoryTypeDevice && about.device == 0 && about.device_pointer == device + 3);
  EXPECT(std::memcmp(about.guard, before.guard, sizeof before.guard) == 0);
  CHECK(advise12(managed, sizeof managed, cudaMemAdviseSetReadMostly, 0));
  CHECK(advise12(managed, sizeof managed, cudaMemAdviseUnsetReadMostly, 0));
  CHECK(advise12(managed, sizeof managed, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
  EXPECT(advise12(device, 4, cudaMemAdviseSetReadMostly, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(prefetch12(managed, sizeof managed, 0, nullptr));
  fill<<<8, 128>>>(managed, 1000, 3);
  CHECK(prefetch12(managed, sizeof managed, cudaCpuDeviceId, nullptr));
  CHECK(synchronize12());
  for (int i = 0; i < 1000; ++i)
    if (managed[i] != 3 * i + 5) expect(false, "managed memory");
}

void textures() {
  constexpr int n = 777;
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i * 0.5F;
  float *values, *result;
  CHECK(cudaMalloc(&values, n * sizeof(float)));
  CHECK(cudaMalloc(&result, n * sizeof(float)));
  CHECK(cudaMemcpy(values, in.data(), n * sizeof(float), cudaMemcpyDefault));
  cudaResourceDesc resource{};  // in CUDA 12, the structure ends after 64 bytes
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {values, cudaCreateChannelDesc<float>(), n * sizeof(float)};
  std::vector<unsigned char> short_one(64);
  std::memcpy(short_one.data(), &resource, short_one.size());
  const cudaTextureDesc how{};
  cudaTextureObject_t texture = 0;
  CHECK(create_texture12(&texture, short_one.data(), &how, nullptr));
  look_up<<<(n + 127) / 128, 128>>>(texture, result, n);
  CHECK(cudaMemcpy(out.data(), result, n * sizeof(float), cudaMemcpyDefault));
  EXPECT(in == out);
  std::vector<unsigned char> told(128, 0xee);
  CHECK(resource_of12(told.data(), texture));
  EXPECT(std::memcmp(told.data(), short_one.data(), 4) == 0 && std::memcmp(&told[8], &short_one[8], 32) == 0);
  for (std::size_t i = 64; i < told.size(); ++i)
    if (told[i] != 0xee) expect(false, "room behind a cudaResourceDesc");
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFree(values));
  CHECK(cudaFree(result));
}

void graphs(int* device) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  fill<<<1, 64, 0, stream>>>(device, 64, 2);
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* after = nullptr;
  std::size_t count = 0;
  CHECK(capture_info12(stream, &status, &id, &graph, &after, &count));
  EXPECT(status == cudaStreamCaptureStatusActive && graph != nullptr && count == 1);
  const cudaGraphNode_t kernel = after[0];
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t empty[2];
  for (cudaGraphNode_t& each : empty) CHECK(cudaGraphAddEmptyNode(&each, graph, nullptr, 0));
  CHECK(add_dependencies12(graph, &kernel, &empty[0], 1));
  CHECK(add_dependencies12_v2(graph, &empty[0], &empty[1], nullptr, 1));
  cudaGraphNode_t from[4], to[4];
  count = 4;
  CHECK(edges12(graph, from, to, &count));
  EXPECT(count == 2 && from[0] != to[0]);
  count = 4;
  CHECK(dependencies12(empty[0], from, &count));
  EXPECT(count == 1 && from[0] == kernel);
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaStreamSynchronize(stream));
  float milliseconds = -1;
  CHECK(elapsed12(&milliseconds, begin, end));
  EXPECT(milliseconds >= 0);
  int last = 0;
  CHECK(cudaMemcpy(&last, device + 63, sizeof last, cudaMemcpyDeviceToHost));
  EXPECT(last == 63 * 2 + 5);
}

// Launches one grid on each device; the second copy on stream 0 waits for both grids.
void several_devices() {
  constexpr int n = 64;
  int* out[2];
  cudaStream_t streams[2];
  launch12 list[2];
  int count = n, values[2] = {2, 3};
  void* arguments[2][3];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaMalloc(&out[i], n * sizeof(int)));
    CHECK(cudaStreamCreate(&streams[i]));
    arguments[i][0] = &out[i];
    arguments[i][1] = &count;
    arguments[i][2] = &values[i];
    list[i] = {reinterpret_cast<const void*>(fill), dim3(1), dim3(n), arguments[i], 0, streams[i]};
  }
  CHECK(launch_on_devices12(list, 2, 0));
  int last[2];
  for (int i = 0; i < 2; ++i)
    CHECK(cudaMemcpyAsync(&last[i], out[i] + n - 1, sizeof(int), cudaMemcpyDeviceToHost, streams[0]));
  CHECK(cudaStreamSynchronize(streams[0]));
  EXPECT(last[0] == 63 * 2 + 5 && last[1] == 63 * 3 + 5);
  list[1].stream = streams[0];
  EXPECT(launch_on_devices12(list, 2, 0) == cudaErrorInvalidDevice);
  list[1].stream = nullptr;
  EXPECT(launch_on_devices12(list, 2, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaSetDevice(0));
}

int main() {
  int* device;
  CHECK(cudaMalloc(&device, 1000 * sizeof(int)));
  structures();
  memory(device);
  textures();
  graphs(device);
  several_devices();
  if (wrong == 0) std::printf("CUDA 12: right\n");
  return wrong == 0 ? 0 : 1;
}
