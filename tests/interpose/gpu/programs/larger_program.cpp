// A program that allocates more memory than its GPU has, calls the CUDA driver as CUDA's runtime does, and does not use
// hpe itself. The words of the command line select the parts of the program that run. Prints numbers that depend on all
// results, and the results of the driver's calls.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/interpose/gpu/add_kernel.h"

namespace {

#define MUST(call) must(call, #call)
void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", call, static_cast<int>(result));
  std::exit(9);
}

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t array_bytes = 6 * mebibyte;
constexpr std::size_t before = 8;  // kernel add_behind uses the words at this distance, in bytes, behind its pointers
constexpr unsigned stride = 1024;  // the distance in words between the words that a kernel uses: one word in 4 KiB
constexpr unsigned used_words = array_bytes / sizeof(unsigned) / stride;

CUfunction add_kernel = nullptr, add_behind_kernel = nullptr, add_unknown_kernel = nullptr;
CUfunction add_in_table_kernel = nullptr, set_entry_kernel = nullptr;
CUmodule kernels = nullptr;

// add_in_table: adds `value` to the words of the array at table[from], and writes the sums to the array at table[to].
// set_entry: table[index] = array.
constexpr const char* table_code = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add_in_table(.param .u64 table, .param .u32 to, .param .u32 from, .param .u32 value, .param .u32 stride)
{
  .reg .u32 %r<11>;
  .reg .u64 %d<11>;
  ld.param.u64 %d1, [table];
  ld.param.u32 %r1, [to];
  ld.param.u32 %r2, [from];
  ld.param.u32 %r3, [value];
  ld.param.u32 %r4, [stride];
  mul.wide.u32 %d2, %r1, 8;
  add.u64 %d3, %d1, %d2;
  ld.global.u64 %d4, [%d3];
  mul.wide.u32 %d5, %r2, 8;
  add.u64 %d6, %d1, %d5;
  ld.global.u64 %d7, [%d6];
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ntid.x;
  mov.u32 %r7, %tid.x;
  mad.lo.u32 %r8, %r5, %r6, %r7;
  mul.lo.u32 %r8, %r8, %r4;
  mul.wide.u32 %d8, %r8, 4;
  add.u64 %d9, %d7, %d8;
  ld.global.u32 %r9, [%d9];
  add.u32 %r10, %r9, %r3;
  add.u64 %d10, %d4, %d8;
  st.global.u32 [%d10], %r10;
  ret;
}
.visible .entry set_entry(.param .u64 table, .param .u32 index, .param .u64 array)
{
  .reg .u32 %r<2>;
  .reg .u64 %d<5>;
  ld.param.u64 %d1, [table];
  ld.param.u32 %r1, [index];
  ld.param.u64 %d2, [array];
  mul.wide.u32 %d3, %r1, 8;
  add.u64 %d4, %d1, %d3;
  st.global.u64 [%d4], %d2;
  ret;
}
)";

void start() {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&kernels, stand_in::add_code));
  MUST(cuModuleGetFunction(&add_kernel, kernels, "add"));
  std::string behind = stand_in::add_code;
  behind.replace(behind.find("entry add("), 10, "entry add_behind(");
  for (const std::string address : {"[%d5]", "[%d4]"})
    behind.replace(behind.find(address), address.size(), address.substr(0, 4) + "+" + std::to_string(before) + "]");
  CUmodule more = nullptr;
  MUST(cuModuleLoadData(&more, behind.c_str()));
  MUST(cuModuleGetFunction(&add_behind_kernel, more, "add_behind"));
  // hpe cannot know where a kernel writes that follows a pointer in memory. No array begins with the pointer 1.
  std::string unknown = stand_in::add_code;
  unknown.replace(unknown.find("entry add("), 10, "entry add_unknown(");
  unknown.insert(unknown.find("  ret;"),
                 ".reg .pred %p1; ld.global.u64 %d6, [%d2]; setp.eq.u64 %p1, %d6, 1; @%p1 st.global.u32 [%d6], 0;\n");
  MUST(cuModuleLoadData(&more, unknown.c_str()));
  MUST(cuModuleGetFunction(&add_unknown_kernel, more, "add_unknown"));
  MUST(cuModuleLoadData(&more, table_code));
  MUST(cuModuleGetFunction(&add_in_table_kernel, more, "add_in_table"));
  MUST(cuModuleGetFunction(&set_entry_kernel, more, "set_entry"));
}

CUdeviceptr array(std::size_t bytes = array_bytes) {
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, bytes));
  return made;
}

// The launch uses the first words of each array, one of `parts` equal parts.
CUresult add(CUdeviceptr to, CUdeviceptr from, unsigned value, CUstream stream = nullptr,
             CUfunction kernel = add_kernel, unsigned parts = 1) {
  unsigned distance = stride;
  void* each[] = {&to, &from, &value, &distance};
  constexpr unsigned block = 64;
  return cuLaunchKernel(kernel, used_words / block / parts, 1, 1, block, 1, 1, 0, stream, each, nullptr);
}

unsigned long long sum(const std::vector<unsigned>& words, std::size_t step = stride) {
  unsigned long long result = 0;
  for (std::size_t n = 0; n < words.size(); n += step) result = result * 31 + words[n];
  return result;
}

std::vector<unsigned> words_of(unsigned first, std::size_t bytes = array_bytes) {
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  for (std::size_t n = 0; n < words.size(); ++n) words[n] = first + static_cast<unsigned>(n / stride);
  return words;
}

std::vector<unsigned> content(CUdeviceptr from, std::size_t bytes = array_bytes) {
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  MUST(cuMemcpyDtoH(words.data(), from, bytes));
  return words;
}

// Every launch uses two of five arrays, on two streams that wait for each other.
void five_arrays() {
  constexpr unsigned count = 5;
  std::vector<CUdeviceptr> arrays;
  for (unsigned n = 0; n < count; ++n) {
    arrays.push_back(array());
    MUST(cuMemcpyHtoD(arrays[n], words_of(n * 1000).data(), array_bytes));
  }
  CUstream streams[2];
  CUevent done[2];
  for (int s = 0; s < 2; ++s) {
    MUST(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&done[s], CU_EVENT_DISABLE_TIMING));
  }
  for (unsigned n = 0; n < 4 * count; ++n) {
    const unsigned s = n % 2;
    MUST(cuStreamWaitEvent(streams[s], done[1 - s], 0));
    MUST(add(arrays[(n + 1) % count], arrays[n % count], n, streams[s]));
    MUST(cuEventRecord(done[s], streams[s]));
  }
  MUST(cuCtxSynchronize());
  for (const CUdeviceptr each : arrays) MUST(cuStreamWriteValue32(streams[0], each, 4711, 0));
  MUST(cuCtxSynchronize());
  for (const CUdeviceptr each : arrays) std::printf("%llx ", sum(content(each)));
  std::printf("\n");
  for (const CUdeviceptr each : arrays) MUST(cuMemFree(each));
}

// Fills and copies an array that is larger than the device's memory, also on streams, and uses both ends of the array.
void one_large_array() {
  constexpr std::size_t bytes = 24 * mebibyte;
  const CUdeviceptr large = array(bytes);
  const CUdeviceptr second = array(bytes);
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  MUST(cuMemsetD32Async(large, 7, bytes / sizeof(unsigned), stream));
  MUST(cuMemcpyDtoDAsync(second, large, bytes, stream));
  std::vector<unsigned> back(bytes / sizeof(unsigned));
  MUST(cuMemcpyDtoHAsync(back.data(), second, bytes, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("filled %llx\n", sum(back));
  MUST(cuMemcpyHtoD(large, words_of(5, bytes).data(), bytes));
  MUST(cuMemsetD8(large + bytes / 2, 1, 4096));
  MUST(cuMemcpyHtoDAsync(second, content(large, bytes).data(), bytes, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("copied %llx\n", sum(content(second, bytes)));
  std::printf("past the end %d\n", static_cast<int>(cuMemcpyHtoD(large + 1, back.data(), bytes)));
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = large;
  rows.dstDevice = second + mebibyte;
  rows.srcPitch = rows.dstPitch = 8192;
  rows.WidthInBytes = 4096;
  rows.Height = 256;
  MUST(cuMemcpy2D(&rows));
  std::printf("rows %llx\n", sum(content(second, bytes)));
}

CUDA_MEMCPY3D planes_of(CUdeviceptr to, const void* host, CUdeviceptr from) {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = host != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcHost = host;
  c.srcDevice = from;
  c.dstDevice = to;
  return c;
}

// Copies rows and planes that together are larger than the device's memory, with and without gaps.
void rows_and_planes() {
  constexpr std::size_t bytes = 24 * mebibyte, pitch = 8192, height = 64;
  const CUdeviceptr large = array(bytes), second = array(bytes);
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  for (std::size_t n = 0; n < words.size(); ++n) words[n] = static_cast<unsigned>(n);
  MUST(cuMemsetD2D32Async(large, pitch, 3, pitch / 4, bytes / pitch, nullptr));
  MUST(cuMemsetD2D32Async(large, pitch, 9, 5, bytes / pitch, nullptr));
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcHost = words.data();
  rows.dstDevice = large;
  rows.srcXInBytes = 8;
  rows.dstY = 3;
  rows.srcPitch = rows.dstPitch = pitch;
  rows.WidthInBytes = 4000;
  rows.Height = bytes / pitch - 3;
  MUST(cuMemcpy2D(&rows));
  std::printf("rows %llx\n", sum(content(large, bytes), 1));
  // Copies the columns on the left to the columns on the right, in the same rows.
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = large;
  rows.dstXInBytes = 4096;
  rows.srcY = 3;
  MUST(cuMemcpy2DAsync(&rows, nullptr));
  rows = {};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = large;
  rows.dstDevice = second;
  rows.srcPitch = rows.dstPitch = bytes;
  rows.WidthInBytes = bytes;
  rows.Height = 1;
  MUST(cuMemcpy2D(&rows));
  std::printf("one row %llx\n", sum(content(second, bytes), 1));
  CUDA_MEMCPY3D c = planes_of(second, words.data(), 0);
  c.WidthInBytes = 100;
  c.Height = 40;
  c.Depth = bytes / pitch / height - 2;
  c.srcPitch = c.dstPitch = pitch;
  c.srcHeight = c.dstHeight = height;
  c.srcZ = c.dstZ = 2;
  c.srcY = 1;
  c.dstY = 24;
  c.dstXInBytes = 12;
  MUST(cuMemcpy3D(&c));
  std::printf("planes %llx\n", sum(content(second, bytes), 1));
  CUDA_MEMCPY3D_PEER p{};
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  p.srcDevice = second;
  p.dstDevice = large;
  p.WidthInBytes = 8000;
  p.Height = height;
  p.Depth = bytes / pitch / height;
  p.srcPitch = p.dstPitch = pitch;
  p.srcHeight = p.dstHeight = height;
  MUST(cuMemcpy3DPeer(&p));
  std::printf("peer %llx\n", sum(content(large, bytes), 1));
  p.Depth += 1;
  std::printf("past the end %d\n", static_cast<int>(cuMemcpy3DPeer(&p)));
}

CUDA_KERNEL_NODE_PARAMS node_of_add(void** parameters) {
  CUDA_KERNEL_NODE_PARAMS k{};
  k.func = add_kernel;
  k.gridDimX = used_words / 64;
  k.blockDimX = 64;
  k.gridDimY = k.gridDimZ = k.blockDimY = k.blockDimZ = 1;
  k.kernelParams = parameters;
  return k;
}

CUDA_MEMCPY3D whole_array(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D c = planes_of(to, nullptr, from);
  c.srcPitch = c.dstPitch = c.WidthInBytes = array_bytes;
  c.srcHeight = c.dstHeight = c.Height = c.Depth = 1;
  return c;
}

// Graphs that each use two of three arrays: with nodes that are added one by one, with a child graph, and with nodes
// that change.
void graphs() {
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr arrays[3];
  for (unsigned n = 0; n < 3; ++n) {
    arrays[n] = array();
    MUST(cuMemcpyHtoD(arrays[n], words_of(n * 1000).data(), array_bytes));
  }
  auto [a, b, c] = arrays;
  CUgraph graph = nullptr, child = nullptr;
  CUgraphNode copy = nullptr, fill = nullptr, kernel = nullptr, of_child = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphCreate(&child, 0));
  CUDA_MEMCPY3D copied = whole_array(b, a);
  MUST(cuGraphAddMemcpyNode(&copy, graph, nullptr, 0, &copied, context));
  CUDA_MEMSET_NODE_PARAMS filled{};
  filled.dst = b + mebibyte;
  filled.value = 77;
  filled.elementSize = 4;
  filled.width = 5000;
  filled.height = 1;
  MUST(cuGraphAddMemsetNode(&fill, graph, &copy, 1, &filled, context));
  unsigned value = 5, distance = stride;
  void* parameters[] = {&b, &b, &value, &distance};
  CUDA_KERNEL_NODE_PARAMS k = node_of_add(parameters);
  MUST(cuGraphAddKernelNode(&kernel, child, nullptr, 0, &k));
  MUST(cuGraphAddChildGraphNode(&of_child, graph, &fill, 1, child));
  MUST(cuGraphAddKernelNode(&kernel, graph, &of_child, 1, &k));
  CUgraphExec instance = nullptr;
  MUST(cuGraphInstantiate(&instance, graph, 0));
  MUST(add(c, c, 1, stream));
  MUST(cuGraphLaunch(instance, stream));
  MUST(add(c, c, 1, stream));
  MUST(cuGraphLaunch(instance, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("graph %llx %llx\n", sum(content(b)), sum(content(a)));
  copied = whole_array(b, c);
  MUST(cuGraphExecMemcpyNodeSetParams(instance, copy, &copied, context));
  MUST(cuGraphLaunch(instance, stream));
  MUST(cuStreamSynchronize(stream));
  std::printf("changed %llx %llx\n", sum(content(a)), sum(content(b)));
  void* others[] = {&a, &c, &value, &distance};
  k = node_of_add(others);
  MUST(cuGraphExecKernelNodeSetParams(instance, kernel, &k));
  std::printf("all arrays %d\n", static_cast<int>(cuGraphLaunch(instance, stream)));
  MUST(cuStreamSynchronize(stream));
  MUST(cuGraphExecDestroy(instance));
  // The driver inspects the addresses of captured work.
  MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::printf("captured %d\n", static_cast<int>(cuMemcpyDtoDAsync(a, b, 4096, stream)));
  MUST(cuStreamEndCapture(stream, &graph));
}

// Adds three arrays in turn to a fourth one; two of the four arrays fit in the device's memory. `distance`: how many
// bytes before each array the address is that the kernel gets.
void reads(CUfunction kernel, std::size_t distance = 0) {
  std::vector<CUdeviceptr> arrays;
  for (unsigned n = 0; n < 4; ++n) {
    arrays.push_back(array());
    MUST(cuMemcpyHtoD(arrays[n], words_of(n * 1000).data(), array_bytes));
  }
  for (unsigned n = 0; n < 12; ++n) MUST(add(arrays[3] - distance, arrays[n % 3] - distance, n, nullptr, kernel));
  MUST(cuCtxSynchronize());
  std::printf("sum %llx\n", sum(content(arrays[3])));
}

// Each launch uses a part of two of the arrays, always in the same order.
void steps(CUfunction kernel, unsigned count, unsigned parts) {
  std::vector<CUdeviceptr> arrays;
  for (unsigned n = 0; n < count; ++n) {
    arrays.push_back(array());
    MUST(cuMemcpyHtoD(arrays[n], words_of(n * 1000).data(), array_bytes));
  }
  for (unsigned n = 0; n < 6 * count; ++n)
    MUST(add(arrays[(n + 1) % count], arrays[n % count], n, nullptr, kernel, parts));
  for (const CUdeviceptr each : arrays) std::printf("%llx ", sum(content(each)));
  std::printf("\n");
}

// Like the layers of a model: launches use one array after the other, twice each, in each period in the same order.
void periods() {
  constexpr unsigned count = 96, times = 2;
  constexpr std::size_t bytes = 2 * mebibyte;
  std::vector<CUdeviceptr> arrays;
  for (unsigned n = 0; n < count; ++n) {
    arrays.push_back(array(bytes));
    MUST(cuMemsetD32(arrays[n], n, bytes / sizeof(unsigned)));
  }
  for (unsigned n = 0; n < 10 * count; ++n) {
    unsigned distance = stride;
    CUdeviceptr each = arrays[n % count];
    void* parameters[] = {&each, &each, &n, &distance};
    for (unsigned t = 0; t < times; ++t)
      MUST(cuLaunchKernel(add_unknown_kernel, bytes / sizeof(unsigned) / stride / 64, 1, 1, 64, 1, 1, 0, nullptr,
                          parameters, nullptr));
    if (n % count + 1 == count) std::printf("%llx\n", sum(content(arrays[n / count], bytes)));
  }
  for (const CUdeviceptr each : arrays) std::printf("%llx ", sum(content(each, bytes)));
  std::printf("\n");
}

// The parameters of the kernels name only a table; its entries lead to five arrays. Kernels write one table, and the
// program copies it to another one. (The stand-in translates only the pointers in parameters, so kernels could not use
// pointers that the program writes to a table.) Other launches name two of the arrays.
void tables() {
  constexpr unsigned count = 5, block = 64;
  std::vector<CUdeviceptr> arrays;
  for (unsigned n = 0; n < count; ++n) {
    arrays.push_back(array());
    MUST(cuMemcpyHtoD(arrays[n], words_of(n * 1000).data(), array_bytes));
  }
  CUdeviceptr copied = array(count * sizeof(CUdeviceptr)), written = array();
  for (unsigned n = 0; n < count; ++n) {
    void* each[] = {&written, &n, &arrays[n]};
    MUST(cuLaunchKernel(set_entry_kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, each, nullptr));
  }
  std::vector<CUdeviceptr> pointers(count);
  MUST(cuMemcpyDtoH(pointers.data(), written, count * sizeof(CUdeviceptr)));
  MUST(cuMemcpyHtoD(copied, pointers.data(), count * sizeof(CUdeviceptr)));
  for (unsigned n = 0; n < 6 * count; ++n) {
    unsigned to = (n + 1) % count, from = n % count, distance = stride;
    void* each[] = {n % 2 == 0 ? &copied : &written, &to, &from, &n, &distance};
    MUST(cuLaunchKernel(add_in_table_kernel, used_words / block, 1, 1, block, 1, 1, 0, nullptr, each, nullptr));
    if (n % 3 == 0) MUST(add(arrays[(n + 2) % count], arrays[(n + 3) % count], n, nullptr, add_unknown_kernel));
    if (n % 7 == 0) MUST(add(arrays[(n + 1) % count], arrays[(n + 4) % count], n));
    if (n % 11 == 0) MUST(cuMemcpyDtoD(arrays[n % count], arrays[(n + 1) % count], array_bytes / 2));
    if (n % 13 == 0) std::printf("%llx ", sum(content(arrays[n % count])));
  }
  for (const CUdeviceptr each : arrays) std::printf("%llx ", sum(content(each)));
  std::printf("\n");
}

// Launches a kernel that uses two arrays, where not all arrays fit in the device's memory, and then where not even
// these two fit.
void too_much() {
  std::vector<CUdeviceptr> arrays{array(), array(), array()};
  std::printf("launch %d\n", static_cast<int>(add(arrays[0], arrays[1], 1)));
  const CUdeviceptr large = array(24 * mebibyte);
  std::printf("large %d\n", static_cast<int>(add(large, arrays[1], 1)));
  std::printf("wait %d\n", static_cast<int>(cuCtxSynchronize()));
}

// Two threads launch kernels on one stream; the kernels use two arrays that are larger than the device's memory. The
// parts of a launch are queued together, so all words of an array are equal at the end, whatever the order of the
// launches.
void two_threads() {
  constexpr std::size_t bytes = 24 * mebibyte;
  constexpr unsigned words = bytes / sizeof(unsigned) / stride, block = 64;
  const CUdeviceptr a = array(bytes), b = array(bytes);
  MUST(cuMemsetD32(a, 0, bytes / sizeof(unsigned)));
  MUST(cuMemsetD32(b, 0, bytes / sizeof(unsigned)));
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuCtxGetCurrent(&context));
  const auto launches = [&](CUdeviceptr to, CUdeviceptr from, unsigned value) {
    MUST(cuCtxSetCurrent(context));
    for (unsigned n = 0; n < 5; ++n) {
      unsigned distance = stride;
      void* each[] = {&to, &from, &value, &distance};
      MUST(cuLaunchKernel(add_kernel, words / block, 1, 1, block, 1, 1, 0, stream, each, nullptr));
    }
  };
  std::thread other([&] { launches(a, b, 0); });
  launches(b, a, 1);
  other.join();
  MUST(cuStreamSynchronize(stream));
  for (const CUdeviceptr each : {a, b}) {
    const std::vector<unsigned> made = content(each, bytes);
    unsigned different = 0;
    for (unsigned n = 0; n < words; ++n) different += made[n * stride] != made[0] ? 1 : 0;
    std::printf("different words %u\n", different);
  }
}

void questions() {
  const CUdeviceptr a = array();
  const CUdeviceptr b = array(20 * mebibyte);
  std::size_t free = 0, total = 0, bytes = 0;
  CUdeviceptr base = 0;
  MUST(cuMemGetInfo(&free, &total));
  MUST(cuMemGetAddressRange(&base, &bytes, b + 12345));
  std::printf("memory %zu of %zu, base %d, bytes %zu\n", free / mebibyte, total / mebibyte, base == b, bytes);
  unsigned type = 0;
  int device = -1;
  CUcontext context = nullptr, current = nullptr;
  MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b + 1));
  void* host = &host;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&context, &device, &host};
  MUST(cuPointerGetAttributes(3, names, values, b));
  // The driver gives the values of attributes that hpe does not know. Calls with an unknown attribute, without
  // attributes or with a null pointer return CUDA_ERROR_INVALID_VALUE.
  unsigned capable = 99, narrow[] = {99, 99};
  std::size_t mapping = 99;
  CUpointer_attribute more[] = {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
                                CU_POINTER_ATTRIBUTE_MAPPED};
  void* more_values[] = {&capable, &mapping, narrow};
  MUST(cuPointerGetAttributes(3, more, more_values, b));
  std::printf("capable %u, mapping %d, mapped %u, beside %u\n", capable, mapping != 99, narrow[0], narrow[1]);
  CUpointer_attribute unknown[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, static_cast<CUpointer_attribute>(999)};
  const int not_known = cuPointerGetAttributes(2, unknown, more_values, b);
  const int of_none = cuPointerGetAttributes(0, more, more_values, b);
  more_values[1] = nullptr;
  std::printf("not known %d, none %d, null %d\n", not_known, of_none,
              static_cast<int>(cuPointerGetAttributes(2, more, more_values, b)));
  MUST(cuCtxGetCurrent(&current));
  std::printf("type %u, device %d, context %d, host %d\n", type, device, context == current, host == nullptr);
  const std::pair<CUpointer_attribute, unsigned long long> attributes[] = {
      {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, b + 1},
      {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, b},
      {CU_POINTER_ATTRIBUTE_RANGE_SIZE, 20 * mebibyte},
      {CU_POINTER_ATTRIBUTE_IS_MANAGED, 0},
      {CU_POINTER_ATTRIBUTE_MAPPED, 1},
      {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 0},
      {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 0},
      {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
      {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 0}};
  for (const auto& [attribute, expected] : attributes) {
    unsigned long long value = ~0U;  // some attributes only set four bytes
    MUST(cuPointerGetAttribute(&value, attribute, b + 1));
    if (value != expected) std::printf("attribute %d is wrong\n", static_cast<int>(attribute));
  }
  CUipcMemHandle handle;
  std::printf("ipc %d\n", static_cast<int>(cuIpcGetMemHandle(&handle, a)));
  // Small allocations go to the driver, which also returns the error if the pointer for the address is null.
  std::printf("ipc of little %d\n", static_cast<int>(cuIpcGetMemHandle(&handle, array(mebibyte - 1))));
  std::printf("nowhere %d\n", static_cast<int>(cuMemAlloc(nullptr, array_bytes)));
  MUST(cuMemFree(a));
  std::printf("freed twice %d\n", static_cast<int>(cuMemFree(a)));
  CUdeviceptr rows = 0;
  std::size_t pitch = 0;
  MUST(cuMemAllocPitch(&rows, &pitch, 5000, 1000, 4));
  std::printf("pitch %zu\n", pitch);
  CUdeviceptr of_stream = 0;
  MUST(cuMemAllocAsync(&of_stream, array_bytes, nullptr));
  MUST(add(of_stream, of_stream, 1));
  MUST(cuMemFreeAsync(of_stream, nullptr));
  MUST(cuDevicePrimaryCtxReset(0));
  MUST(cuMemGetInfo(&free, &total));
  std::printf("after the reset %zu of %zu\n", free / mebibyte, total / mebibyte);
  MUST(cuMemcpyHtoD(array(), words_of(1).data(), array_bytes));
}

// CPU code reads and writes the memory directly.
void touches() {
  const CUdeviceptr a = array(), b = array(), c = array();
  auto* const words = reinterpret_cast<unsigned*>(a);  // NOLINT(performance-no-int-to-ptr)
  for (unsigned n = 0; n < used_words; ++n) words[n * stride] = n;
  MUST(add(b, a, 1));
  MUST(add(c, b, 1));
  MUST(add(a, c, 1));
  MUST(cuStreamSynchronize(nullptr));
  unsigned long long all = 0;
  for (unsigned n = 0; n < used_words; ++n) all = all * 31 + words[n * stride];
  std::printf("touched %llx\n", all);
}

CUdeviceptr left_for_the_end = 0;

// Runs at the exit of the program like the exit handler of CUDA's runtime, after the destructors of objects that hpe
// has constructed later. Loads and launches code, because that uses most parts of hpe.
void end() {
  MUST(add(left_for_the_end, left_for_the_end, 1));
  CUmodule late = nullptr;
  MUST(cuModuleLoadData(&late, stand_in::add_code));
  MUST(cuModuleGetFunction(&add_kernel, late, "add"));
  MUST(add(left_for_the_end, left_for_the_end, 2));
  MUST(cuCtxSynchronize());
  std::printf("sum %llx\n", sum(content(left_for_the_end)));
  MUST(cuModuleUnload(late));
  MUST(cuMemFree(left_for_the_end));
  MUST(cuModuleUnload(kernels));
  MUST(cuDevicePrimaryCtxRelease(0));
  std::printf("released at the end\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bool ends = argc > 1 && std::strcmp(argv[1], "end") == 0;
  if (ends) std::atexit(end);
  start();
  if (ends) {
    left_for_the_end = array();
    MUST(cuMemcpyHtoD(left_for_the_end, words_of(1).data(), array_bytes));
    MUST(add(left_for_the_end, left_for_the_end, 0));
  }
  for (int n = 1; n < argc; ++n) {
    const auto is = [&](const char* part) { return std::strcmp(argv[n], part) == 0; };
    if (is("arrays")) five_arrays();
    if (is("large")) one_large_array();
    if (is("reads")) reads(add_kernel);
    if (is("reads-behind")) reads(add_behind_kernel, before);
    if (is("reads-unknown")) reads(add_unknown_kernel);
    if (is("steps")) steps(add_unknown_kernel, 5, 1);
    if (is("thirds")) steps(add_kernel, 4, 3);
    if (is("periods")) periods();
    if (is("tables")) tables();
    if (is("much")) too_much();
    if (is("threads")) two_threads();
    if (is("rows")) rows_and_planes();
    if (is("graphs")) graphs();
    if (is("ask")) questions();
    if (is("touch")) touches();
  }
  return 0;
}
