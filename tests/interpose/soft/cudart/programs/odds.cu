// Features besides plain launches: child processes, threads, host functions, timing, peers, IPC, pools, mapped memory,
// printf, textures, and work that has not finished when the program ends. `odds NAME` prints errors, or "right".
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/programs/check.h"

__global__ void add(int* p, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += k;
}

__global__ void gather(const int* from, int* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[n - 1 - i] * 2;
}

static void demand(bool good, const char* what) {
  if (good) return;
  std::printf("WRONG: %s\n", what);
  std::fflush(stdout);
  std::_Exit(1);
}

static void round_trip(int k) {
  std::vector<int> host(1000, k);
  int* p;
  CHECK(cudaMalloc(&p, 4000));
  CHECK(cudaMemcpy(p, host.data(), 4000, cudaMemcpyHostToDevice));
  add<<<4, 256>>>(p, 1000, 1);
  CHECK(cudaMemcpy(host.data(), p, 4000, cudaMemcpyDeviceToHost));
  for (const int value : host) demand(value == k + 1, "round trip");
  CHECK(cudaFree(p));
}

// A process that has not used CUDA starts child processes that use CUDA, like a server with workers.
static void children() {
  std::vector<pid_t> workers;
  for (int w = 0; w < 3; ++w) {
    const pid_t child = fork();
    if (child == 0) {
      round_trip(w);
      std::_Exit(40 + w);
    }
    workers.push_back(child);
  }
  for (int w = 0; w < 3; ++w) {
    int status = 0;
    waitpid(workers[w], &status, 0);
    demand(WIFEXITED(status) && WEXITSTATUS(status) == 40 + w, "a child");
  }
  round_trip(9);
}

static void threads() {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t)
      all.emplace_back([t] {
        CHECK(cudaSetDevice(t % 2));
        round_trip(t);
      });
    for (std::thread& t : all) t.join();
  }
}

static void host_functions() {
  static std::vector<int> order;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  int* p;
  CHECK(cudaMalloc(&p, 4000));
  CHECK(cudaMemsetAsync(p, 0, 4000, stream));
  static int seen[1000];
  for (int k = 0; k < 5; ++k) {
    add<<<4, 256, 0, stream>>>(p, 1000, 1);
    CHECK(cudaMemcpyAsync(seen, p, 4000, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, [](void*) { order.push_back(seen[999]); }, nullptr));
  }
  CHECK(cudaStreamSynchronize(stream));
  demand(order == std::vector<int>({1, 2, 3, 4, 5}), "host functions in order");
}

static void timing() {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventRecord(begin, stream));
  CHECK(cudaLaunchHostFunc(stream, [](void*) { usleep(30000); }, nullptr));
  CHECK(cudaEventRecord(end, stream));
  demand(cudaEventQuery(end) == cudaErrorNotReady, "not ready yet");
  float milliseconds = -1;
  demand(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorNotReady, "no time yet");
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  demand(milliseconds >= 29 && milliseconds < 20000, "the time");
}

// A kernel reads the memory of another device.
static void peers() {
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  demand(can == 1, "can access");
  int *there, *here;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&there, 4000));
  std::vector<int> host(1000);
  for (int i = 0; i < 1000; ++i) host[i] = i;
  CHECK(cudaMemcpy(there, host.data(), 4000, cudaMemcpyHostToDevice));
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  demand(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled, "already");
  demand(cudaGetLastError() == cudaErrorPeerAccessAlreadyEnabled, "the last error");
  CHECK(cudaMalloc(&here, 4000));
  gather<<<4, 256>>>(there, here, 1000);
  CHECK(cudaMemcpy(host.data(), here, 4000, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) demand(host[i] == (999 - i) * 2, "gathered");
  cudaPointerAttributes about;
  CHECK(cudaPointerGetAttributes(&about, there + 10));
  demand(about.type == cudaMemoryTypeDevice && about.device == 1 && about.devicePointer == there + 10, "attributes");
}

// One process uses device memory of another process.
static void between_processes() {
  int to_child[2], to_parent[2];
  demand(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipes");
  const pid_t child = fork();
  cudaIpcMemHandle_t handle;
  char byte = 0;
  if (child == 0) {
    close(to_child[1]);  // so that the child ends when the parent ends
    demand(read(to_child[0], &handle, sizeof handle) == ssize_t(sizeof handle), "the handle");
    int* p;
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&p), handle, cudaIpcMemLazyEnablePeerAccess));
    add<<<4, 256>>>(p, 1000, 5);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcCloseMemHandle(p));
    demand(write(to_parent[1], &byte, 1) == 1, "tell");
    std::_Exit(0);
  }
  int* p;
  CHECK(cudaMalloc(&p, 4000));
  CHECK(cudaMemset(p, 0, 4000));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaIpcGetMemHandle(&handle, p));
  demand(write(to_child[1], &handle, sizeof handle) == ssize_t(sizeof handle), "send");
  demand(read(to_parent[0], &byte, 1) == 1, "the child's word");
  int host[1000];
  CHECK(cudaMemcpy(host, p, 4000, cudaMemcpyDeviceToHost));
  for (const int value : host) demand(value == 5, "what the child wrote");
  waitpid(child, nullptr, 0);
}

static void send_descriptor(int to, int descriptor) {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{nullptr, 0, &bytes, 1, room, sizeof room, 0};
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  demand(sendmsg(to, &message, 0) == 1, "send a descriptor");
}

static int receive_descriptor(int from) {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{nullptr, 0, &bytes, 1, room, sizeof room, 0};
  demand(recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != nullptr, "receive a descriptor");
  int descriptor;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

static void use_pool_of_parent(int parent) {
  const int descriptor = receive_descriptor(parent);
  cudaMemPoolPtrExportData data;
  demand(read(parent, &data, sizeof data) == ssize_t(sizeof data), "the exported pointer");
  cudaMemPool_t pool;
  CHECK(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(intptr_t(descriptor)),
                                             cudaMemHandleTypePosixFileDescriptor, 0));
  close(descriptor);
  int *p, *own, *again;
  demand(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&own), 4000, pool, nullptr) == cudaErrorNotPermitted,
         "an imported pool allocates nothing");
  CHECK(cudaMemPoolImportPointer(reinterpret_cast<void**>(&p), pool, &data));
  CHECK(cudaMemPoolImportPointer(reinterpret_cast<void**>(&again), pool, &data));
  demand(p == again, "one address");
  add<<<4, 256>>>(p, 1000, 5);
  CHECK(cudaFreeAsync(p, nullptr));
  CHECK(cudaFree(again));
  demand(cudaFree(again) == cudaErrorInvalidValue, "freed as often as imported");
  demand(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(intptr_t(parent)),
                                              cudaMemHandleTypePosixFileDescriptor, 0) == cudaErrorInvalidValue,
         "a descriptor of something else");
  cudaGetLastError();
  demand(write(parent, "", 1) == 1, "tell");
}

// One process uses pool memory of another process.
static void pools() {
  int ends[2];
  demand(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    use_pool_of_parent(ends[0]);
    std::_Exit(0);
  }
  close(ends[0]);
  int types = 0;
  CHECK(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0));
  demand((types & cudaMemHandleTypePosixFileDescriptor) != 0, "pools can be shared");
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location = {cudaMemLocationTypeDevice, 0};
  cudaMemPool_t pool, own;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  CHECK(cudaDeviceGetDefaultMemPool(&own, 0));
  int *p, *of_own;
  CHECK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&p), 4000, pool, nullptr));
  CHECK(cudaMallocAsync(reinterpret_cast<void**>(&of_own), 4000, nullptr));
  CHECK(cudaMemsetAsync(p, 0, 4000, nullptr));
  CHECK(cudaDeviceSynchronize());
  int descriptor = -1;
  cudaMemPoolPtrExportData data;
  demand(cudaMemPoolExportToShareableHandle(&descriptor, own, cudaMemHandleTypePosixFileDescriptor, 0) ==
             cudaErrorInvalidValue, "the default pool is not shared");
  demand(cudaMemPoolExportPointer(&data, of_own) == cudaErrorInvalidValue, "nor is its memory");
  cudaGetLastError();
  CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  CHECK(cudaMemPoolExportPointer(&data, p));
  send_descriptor(ends[1], descriptor);
  demand(write(ends[1], &data, sizeof data) == ssize_t(sizeof data), "send");
  char byte;
  demand(read(ends[1], &byte, 1) == 1, "the child's word");
  std::vector<int> host(1000);
  CHECK(cudaMemcpy(host.data(), p, 4000, cudaMemcpyDeviceToHost));
  for (const int value : host) demand(value == 5, "what the child wrote");
  CHECK(cudaFreeAsync(p, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemPoolDestroy(pool));
  waitpid(child, nullptr, 0);
}

static void mapped() {
  int* host;
  CHECK(cudaHostAlloc(&host, 4000, cudaHostAllocMapped));
  for (int i = 0; i < 1000; ++i) host[i] = i;
  int* device;
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  add<<<4, 256>>>(device, 1000, 3);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 1000; ++i) demand(host[i] == i + 3, "mapped memory");
  CHECK(cudaFreeHost(host));
  std::vector<int> own(5000, 4);
  CHECK(cudaHostRegister(own.data(), own.size() * sizeof(int), cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&device, own.data(), 0));
  add<<<20, 256>>>(device, 5000, 1);
  CHECK(cudaDeviceSynchronize());
  for (const int value : own) demand(value == 5, "registered memory");
  CHECK(cudaHostUnregister(own.data()));
}

__global__ void sample(cudaTextureObject_t texture, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}

__global__ void print(int* results, const char* no_format) {
  results[0] = printf("%d and %s, 100%%\n", 1, "two");
  results[1] = printf("without arguments\n");
  results[2] = printf(no_format);
}

static void results_of_printf() {
  int* device;
  CHECK(cudaMalloc(&device, 3 * sizeof(int)));
  print<<<1, 1>>>(device, nullptr);
  int results[3];
  CHECK(cudaMemcpy(results, device, sizeof results, cudaMemcpyDeviceToHost));
  demand(results[0] == 2 && results[1] == 0 && results[2] == -1, "the number of arguments, or -1");
  CHECK(cudaFree(device));
}

static void textures() {
  constexpr int width = 100, height = 37;
  std::vector<float> in(width * height), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = float(i % 61) / 4;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, width, height));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, in.data(), width * sizeof(float), width * sizeof(float), height,
                            cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description{};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  float* device;
  CHECK(cudaMalloc(&device, in.size() * sizeof(float)));
  sample<<<dim3(4, 5), dim3(32, 8)>>>(texture, device, width, height);
  CHECK(cudaMemcpy(out.data(), device, in.size() * sizeof(float), cudaMemcpyDeviceToHost));
  demand(out == in, "what the texture gave");
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
}

static struct at_the_end {
  int* memory = nullptr;
  ~at_the_end() {
    if (memory != nullptr) std::printf("freed at the end: %d\n", int(cudaFree(memory)));
  }
} left_over;

// The program ends while work is in flight; a static object frees the memory.
static void abrupt() {
  CHECK(cudaMalloc(&left_over.memory, 1 << 20));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (int k = 0; k < 50; ++k) add<<<1024, 256, 0, stream>>>(left_over.memory, 1 << 18, k);
}

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> all{
      {"abrupt", abrupt}, {"between_processes", between_processes}, {"children", children}, {"host_functions", host_functions},
      {"mapped", mapped}, {"peers", peers}, {"pools", pools}, {"printf", results_of_printf}, {"textures", textures}, {"threads", threads}, {"timing", timing}};
  const auto found = all.find(argc > 1 ? argv[1] : "");
  if (found == all.end()) return 2;
  found->second();
  std::printf("%s: right\n", argv[1]);
}
