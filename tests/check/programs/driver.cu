// Programs that call CUDA's driver interface.
#include <cuda.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/check/programs/cases.h"

#define CHECK(call)                                                            \
  do {                                                                         \
    if (const CUresult result = (call); result != CUDA_SUCCESS) {              \
      std::printf("%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, result); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

constexpr unsigned count = 1024;
constexpr size_t bytes = count * sizeof(int);

// fill(p, n, value) and twice(to, from, n)
static const char* const kernels = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 p, .param .u32 n, .param .u32 value) {
  .reg .pred %outside;
  .reg .b32 %r<6>;
  .reg .b64 %a<3>;
  ld.param.u64 %a0, [p];
  ld.param.u32 %r0, [n];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %outside, %r5, %r0;
  @%outside bra END;
  mul.wide.u32 %a1, %r5, 4;
  add.s64 %a2, %a0, %a1;
  st.global.u32 [%a2], %r1;
END:
  ret;
}
.visible .entry twice(.param .u64 to, .param .u64 from, .param .u32 n) {
  .reg .pred %outside;
  .reg .b32 %r<7>;
  .reg .b64 %a<5>;
  ld.param.u64 %a0, [to];
  ld.param.u64 %a1, [from];
  ld.param.u32 %r0, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %outside, %r5, %r0;
  @%outside bra END;
  mul.wide.u32 %a2, %r5, 4;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  ld.global.u32 %r6, [%a4];
  add.u32 %r6, %r6, %r6;
  st.global.u32 [%a3], %r6;
END:
  ret;
}
)";

static CUfunction fill, twice;
static CUcontext contexts[2];

static void wait_for_all() {
  for (int i = 1; i >= 0; --i) {
    CHECK(cuCtxSetCurrent(contexts[i]));
    CHECK(cuCtxSynchronize());
  }
}

struct ints {
  CUdeviceptr p;
  ints() {
    CHECK(cuMemAlloc(&p, bytes));
    CHECK(cuMemsetD32(p, 0, count));
    CHECK(cuCtxSynchronize());
  }
  ~ints() {
    wait_for_all();
    CHECK(cuMemFree(p));
  }
};

struct pinned_ints {
  int* p;
  pinned_ints() {
    void* got;
    CHECK(cuMemAllocHost(&got, bytes));
    p = static_cast<int*>(got);
    for (unsigned i = 0; i < count; ++i) p[i] = 0;
  }
  ~pinned_ints() {
    wait_for_all();
    CHECK(cuMemFreeHost(p));
  }
};

struct stream {
  CUstream s;
  explicit stream(unsigned flags = CU_STREAM_NON_BLOCKING) { CHECK(cuStreamCreate(&s, flags)); }
  ~stream() {
    wait_for_all();
    CHECK(cuStreamDestroy(s));
  }
};

struct event {
  CUevent e;
  event() { CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING)); }
  ~event() { CHECK(cuEventDestroy(e)); }
};

// The arguments of a launch of one of the two kernels.
struct fill_arguments {
  CUdeviceptr p;
  unsigned n = count, value = 1;
  void* pointers[3] = {&p, &n, &value};
  explicit fill_arguments(CUdeviceptr p) : p(p) {}
};

struct twice_arguments {
  CUdeviceptr to, from;
  unsigned n = count;
  void* pointers[3] = {&to, &from, &n};
  twice_arguments(CUdeviceptr to, CUdeviceptr from) : to(to), from(from) {}
};

CASE(no_event) {  // stream-race fill
  ints p, q;
  stream a, b;
  event e;
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, a.s, writes.pointers, nullptr));  // FIRST
  CHECK(cuEventRecord(e.e, a.s));
  if (!wrong) CHECK(cuStreamWaitEvent(b.s, e.e, 0));
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, b.s, reads.pointers, nullptr));  // SECOND
}

CASE(event_recorded_too_early) {  // stream-race fill
  ints p, q;
  stream a, b;
  event e;
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  if (wrong) CHECK(cuEventRecord(e.e, a.s));
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, a.s, writes.pointers, nullptr));  // FIRST
  if (!wrong) CHECK(cuEventRecord(e.e, a.s));
  CHECK(cuStreamWaitEvent(b.s, e.e, 0));
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, b.s, reads.pointers, nullptr));  // SECOND
}

CASE(legacy_stream_and_nonblocking_stream) {  // stream-race fill
  ints p, q;
  stream b(wrong ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, nullptr, writes.pointers, nullptr));  // FIRST
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, b.s, reads.pointers, nullptr));      // SECOND
}

CASE(memset_and_copy) {  // stream-race -
  ints p, q;
  stream a, b;
  event e;
  CHECK(cuMemsetD32Async(p.p, 1, count, a.s));  // FIRST
  CHECK(cuEventRecord(e.e, a.s));
  if (!wrong) CHECK(cuStreamWaitEvent(b.s, e.e, 0));
  CHECK(cuMemcpyDtoDAsync(q.p, p.p, bytes, b.s));  // SECOND
}

CASE(value_written_too_early) {  // stream-race fill (not on GPUs)
  ints p, q;
  pinned_ints word;
  const auto flag = reinterpret_cast<CUdeviceptr>(word.p);
  stream a, b;
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  if (wrong) CHECK(cuStreamWriteValue32(a.s, flag, 1, 0));
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, a.s, writes.pointers, nullptr));  // FIRST
  if (!wrong) CHECK(cuStreamWriteValue32(a.s, flag, 1, 0));
  CHECK(cuStreamWaitValue32(b.s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, b.s, reads.pointers, nullptr));  // SECOND
}

CASE(pool_memory_used_in_another_stream) {  // stream-race fill
  CUdeviceptr p;
  stream a, b;
  event e;
  CHECK(cuMemAllocAsync(&p, bytes, a.s));  // FIRST
  CHECK(cuEventRecord(e.e, a.s));
  if (!wrong) CHECK(cuStreamWaitEvent(b.s, e.e, 0));
  fill_arguments writes(p);
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, b.s, writes.pointers, nullptr));  // SECOND
  wait_for_all();
  CHECK(cuMemFreeAsync(p, b.s));
}

CASE(copy_between_contexts) {  // stream-race fill
  CHECK(cuCtxSetCurrent(contexts[1]));
  ints q;
  stream b;
  CHECK(cuCtxSetCurrent(contexts[0]));
  ints p;
  stream a;
  event e;
  fill_arguments writes(p.p);
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, a.s, writes.pointers, nullptr));  // FIRST
  CHECK(cuEventRecord(e.e, a.s));
  if (!wrong) CHECK(cuStreamWaitEvent(b.s, e.e, 0));
  CHECK(cuCtxSetCurrent(contexts[1]));
  CHECK(cuMemcpyPeerAsync(q.p, contexts[1], p.p, contexts[0], bytes, b.s));  // SECOND
}

CASE(edge_is_missing) {  // graph-race fill
  ints p, q;
  stream s;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode first, second;
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  CUDA_KERNEL_NODE_PARAMS writer{}, reader{};
  writer.func = fill;
  writer.kernelParams = writes.pointers;
  reader.func = twice;
  reader.kernelParams = reads.pointers;
  for (CUDA_KERNEL_NODE_PARAMS* each : {&writer, &reader}) {
    each->gridDimX = 4;
    each->blockDimX = 256;
    each->gridDimY = each->gridDimZ = each->blockDimY = each->blockDimZ = 1;
  }
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphAddKernelNode(&first, graph, nullptr, 0, &writer));              // FIRST
  CHECK(cuGraphAddKernelNode(&second, graph, &first, wrong ? 0 : 1, &reader));  // SECOND
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  CHECK(cuGraphLaunch(exec, s.s));
  CHECK(cuStreamSynchronize(s.s));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

CASE(callback_too_early) {  // stream-race fill
  ints p, q;
  stream a, b;
  static volatile bool done;
  done = false;
  const auto tell = [](CUstream, CUresult, void*) { done = true; };
  fill_arguments writes(p.p);
  twice_arguments reads(q.p, p.p);
  if (wrong) CHECK(cuStreamAddCallback(a.s, tell, nullptr, 0));
  CHECK(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, a.s, writes.pointers, nullptr));  // FIRST
  if (!wrong) CHECK(cuStreamAddCallback(a.s, tell, nullptr, 0));
  while (!done) usleep(100);
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, b.s, reads.pointers, nullptr));  // SECOND
}

static volatile int seen;

CASE(result_read_too_early) {  // host-touch -
  ints p;
  pinned_ints to;
  stream a;
  CHECK(cuMemcpyDtoHAsync(to.p, p.p, bytes, a.s));  // FIRST
  if (!wrong) CHECK(cuStreamSynchronize(a.s));
  seen = to.p[100];  // SECOND
}

CASE(source_changed_too_early) {  // source-changed -
  ints p;
  pinned_ints from;
  stream a;
  CHECK(cuMemcpyHtoDAsync(p.p, from.p, bytes, a.s));  // FIRST
  if (!wrong) CHECK(cuStreamSynchronize(a.s));
  from.p[100] = 1;  // SECOND
}

// In the next two cases, the driver's own code reads the pinned memory on GPUs. That is no touch by the program.
CASE(copy_between_pinned_memory) {  // stream-race -
  ints p;
  pinned_ints from, to;
  stream a;
  CHECK(cuMemcpyDtoHAsync(from.p, p.p, bytes, a.s));  // FIRST
  if (!wrong) CHECK(cuStreamSynchronize(a.s));
  CHECK(cuMemcpy(reinterpret_cast<CUdeviceptr>(to.p), reinterpret_cast<CUdeviceptr>(from.p), bytes));  // SECOND
}

CASE(small_copy_of_a_result) {  // stream-race -
  ints p, q;
  pinned_ints from;
  stream a;
  CHECK(cuMemcpyDtoHAsync(from.p, p.p, bytes, a.s));  // FIRST
  if (!wrong) CHECK(cuStreamSynchronize(a.s));
  CHECK(cuMemcpyHtoD(q.p, from.p, bytes));  // SECOND
}

CASE(never_written) {  // never-written twice
  ints q;
  CUdeviceptr p;
  CHECK(cuMemAlloc(&p, bytes));  // FIRST
  if (!wrong) CHECK(cuMemsetD32(p, 0, count));
  twice_arguments reads(q.p, p);
  CHECK(cuLaunchKernel(twice, 4, 1, 1, 256, 1, 1, 0, nullptr, reads.pointers, nullptr));  // SECOND
  CHECK(cuCtxSynchronize());
  CHECK(cuMemFree(p));
}

CASE_ALONE(leak) {  // leak -
  CUdeviceptr p;
  CHECK(cuMemAlloc(&p, bytes));  // FIRST
  if (!wrong) CHECK(cuMemFree(p));
}

int main(int argc, char** argv) {
  CHECK(cuInit(0));
  CUmodule modules[2];
  int devices = 0;
  CHECK(cuDeviceGetCount(&devices));
  for (int i = 1; i >= 0; --i) {
    CHECK(cuDevicePrimaryCtxRetain(&contexts[i], i % devices));
    CHECK(cuCtxSetCurrent(contexts[i]));
    CHECK(cuModuleLoadData(&modules[i], kernels));
  }
  CHECK(cuModuleGetFunction(&fill, modules[0], "fill"));
  CHECK(cuModuleGetFunction(&twice, modules[0], "twice"));
  return run_cases(argc, argv, wait_for_all);
}
