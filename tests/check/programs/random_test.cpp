// Random programs of streams, events, copies, launches and accesses of CPU code, run under the check. An oracle
// (random_order.h) tells which operations conflict; the check must find a conflict in each buffer that has one, and no
// other.
//
// HPE_TEST_SEED is the number of the first program, HPE_TEST_PROGRAMS the number of programs. Each operation of a
// program is on a line of its own of this file, by which a finding tells the operation.
#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "interpose/soft/cudart/check/checking.h"
#include "tests/check/programs/random_order.h"

namespace {

using namespace random_order;

#define GOOD(call)                                                                              \
  do {                                                                                          \
    if (const CUresult error = (call); error != CUDA_SUCCESS) {                                 \
      std::cerr << __FILE__ << ':' << __LINE__ << ": " << #call << ": error " << error << '\n'; \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)

// Each kernel accesses n bytes, or n words of four bytes.
std::string kernel_text(const std::string& name, const std::string& body, int width) {
  return ".visible .entry " + name +
         R"((.param .u64 to, .param .u64 from, .param .u32 n) {
  .reg .pred %outside;
  .reg .b32 %r<4>;
  .reg .b64 %a<5>;
  ld.param.u64 %a0, [to];
  ld.param.u64 %a1, [from];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %outside, %r1, %r0;
  @%outside bra END;
  mul.wide.u32 %a2, %r1, )" +
         std::to_string(width) + R"(;
  add.s64 %a3, %a0, %a2;
  add.s64 %a4, %a1, %a2;
  mov.u32 %r2, 7;
)" + body +
         "END:\n  ret;\n}\n";
}

class machine {
 public:
  static constexpr int kernels = 5;

  machine() {
    GOOD(cuInit(0));
    const std::string load = "  ld.global.u8 %r2, [%a4];\n", store = "  st.global.u8 [%a3], %r2;\n";
    const std::string add = "  ld.global.u8 %r2, [%a3];\n  add.u32 %r2, %r2, 1;\n" + store;
    const std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n" + kernel_text("get_bytes", load, 1) +
                             kernel_text("set_bytes", store, 1) + kernel_text("copy_bytes", load + store, 1) +
                             kernel_text("add_bytes", add, 1) +
                             kernel_text("add_words", "  red.global.add.u32 [%a3], %r2;\n", 4);
    for (int d = 1; d >= 0; --d) {
      GOOD(cuDevicePrimaryCtxRetain(&contexts_[d], d));
      GOOD(cuCtxSetCurrent(contexts_[d]));
      CUmodule module = nullptr;
      GOOD(cuModuleLoadData(&module, text.c_str()));
      const char* const names[kernels] = {"get_bytes", "set_bytes", "copy_bytes", "add_bytes", "add_words"};
      for (int k = 0; k < kernels; ++k) GOOD(cuModuleGetFunction(&kernels_[d][k], module, names[k]));
    }
    GOOD(cuCtxEnablePeerAccess(contexts_[1], 0));
    on(1);
    GOOD(cuCtxEnablePeerAccess(contexts_[0], 0));
    for (std::size_t s = 0; s < streams.size(); ++s) {
      on(streams[s].device);
      if (streams[s].kind == stream_kind::legacy)
        streams_[s] = CU_STREAM_LEGACY;
      else if (s == 2)
        streams_[s] = CU_STREAM_PER_THREAD;
      else
        GOOD(cuStreamCreate(&streams_[s], streams[s].kind == stream_kind::independent ? CU_STREAM_NON_BLOCKING : 0));
    }
    for (int e = 0; e < events; ++e) {
      on(device_of_event(e));
      GOOD(cuEventCreate(&events_[e], CU_EVENT_DISABLE_TIMING));
    }
    for (const int b : {first, second, peer}) {
      on(b == peer ? 1 : 0);
      GOOD(cuMemAlloc(&buffers_[b], buffer_bytes));
      GOOD(cuMemsetD8(buffers_[b], 0, buffer_bytes));
    }
    for (const int b : {pinned, other_pinned}) {
      void* got = nullptr;
      GOOD(cuMemAllocHost(&got, buffer_bytes));
      std::memset(got, 0, buffer_bytes);
      buffers_[b] = reinterpret_cast<CUdeviceptr>(got);
    }
    GOOD(cuMemHostRegister(own_page, sizeof own_page, CU_MEMHOSTREGISTER_DEVICEMAP));
    buffers_[registered] = reinterpret_cast<CUdeviceptr>(own_page + buffer_bytes);
    GOOD(cuMemAllocManaged(&buffers_[managed], buffer_bytes, CU_MEM_ATTACH_GLOBAL));
    GOOD(cuMemsetD8(buffers_[managed], 0, buffer_bytes));
    wait();
  }

  ~machine() {
    for (const int b : {first, second, peer, managed}) GOOD(cuMemFree(buffers_[b]));
    for (const int b : {pinned, other_pinned}) GOOD(cuMemFreeHost(reinterpret_cast<void*>(buffers_[b])));
    GOOD(cuMemHostUnregister(own_page));
  }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  /// Runs a program on fresh memory, and tells the oracle what ran.
  void run(const std::vector<operation>& program, oracle& knows) {
    bool has_released = false;
    for (int b = pool; b < pool + blocks_of_pool; ++b) buffers_[b] = 0;
    for (int number = 0; number < static_cast<int>(program.size()); ++number) {
      const operation& o = program[number];
      on(streams[o.stream].device);
      if (o.what == act::allocate && (buffers_[o.to] != 0 || has_released)) continue;
      // Work that uses memory after its release fails, and every later call returns the error.
      if (o.what == act::release && (buffers_[o.to] == 0 || !knows.are_uses_before(o.stream, o.to))) continue;
      if ((has_to(o.what) && buffers_[o.to] == 0) || (has_from(o.what) && buffers_[o.from] == 0)) continue;
      const CUresult result = perform(number, o);
      const bool is_query = o.what == act::query_stream || o.what == act::query_event;
      if (!is_query || result != CUDA_ERROR_NOT_READY) GOOD(result);
      if (o.what == act::release) buffers_[o.to] = 0, has_released = true;
      knows.add(number, o, result == CUDA_SUCCESS);
    }
    wait();
    on(0);
    for (int b = pool; b < pool + blocks_of_pool; ++b)
      if (buffers_[b] != 0) GOOD(cuMemFreeAsync(buffers_[b], streams_[3]));
    wait();
  }

  static int operation_at_line(int line) { return line - first_line_; }

 private:
  alignas(4096) static inline char own_page[4096];  // registered
  CUdeviceptr seen_by_kernels(int b) const {
    CUdeviceptr result = buffers_[b];
    if (b == registered) GOOD(cuMemHostGetDevicePointer(&result, own_page + buffer_bytes, 0));
    return result;
  }
  void on(int device) { GOOD(cuCtxSetCurrent(contexts_[device])); }
  void wait() {
    for (const int device : {1, 0}) {
      on(device);
      GOOD(cuCtxSynchronize());
    }
  }
  struct launch_arguments {
    CUdeviceptr to, from;
    unsigned threads;
    std::array<void*, 3> pointers() { return {&to, &from, &threads}; }
  };
  launch_arguments arguments_of(const memory_use& u) const {
    const unsigned threads = u.what == act::add_words ? u.bytes / 4 : u.bytes;
    return {seen_by_kernels(u.to) + u.to_at, seen_by_kernels(u.from) + u.from_at, threads};
  }
  CUfunction kernel_of(int device, act what) const { return kernels_[device][static_cast<int>(what)]; }

  struct made_graph {
    CUgraph graph = nullptr;
    CUgraphNode nodes[3] = {};
    CUDA_KERNEL_NODE_PARAMS parameters[3] = {};
    std::array<launch_arguments, 3> arguments{};
    std::array<std::array<void*, 3>, 3> pointers{};
  };
  void prepare(made_graph& g, int device, const std::array<memory_use, 3>& uses) const {
    GOOD(cuGraphCreate(&g.graph, 0));
    for (int k = 0; k < 3; ++k) {
      g.arguments[k] = arguments_of(uses[k]);
      g.pointers[k] = g.arguments[k].pointers();
      CUDA_KERNEL_NODE_PARAMS& p = g.parameters[k];
      p.func = kernel_of(device, uses[k].what);
      p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
      p.blockDimX = 64;
      p.kernelParams = g.pointers[k].data();
    }
  }
  static CUresult launch(const made_graph& g, const std::array<bool, 3>& edges, CUstream s) {
    const std::array<std::pair<int, int>, 3> pairs{{{0, 1}, {0, 2}, {1, 2}}};
    for (int e = 0; e < 3; ++e)
      if (edges[e])
        GOOD(cuGraphAddDependencies(g.graph, &g.nodes[pairs[e].first], &g.nodes[pairs[e].second], nullptr, 1));
    CUgraphExec exec = nullptr;
    GOOD(cuGraphInstantiate(&exec, g.graph, 0));
    GOOD(cuGraphLaunch(exec, s));
    GOOD(cuGraphExecDestroy(exec));
    GOOD(cuGraphDestroy(g.graph));
    return CUDA_SUCCESS;
  }

  CUresult perform(int number, const operation& o);

  CUcontext contexts_[2]{};
  CUfunction kernels_[2][kernels]{};
  CUstream streams_[streams.size()]{};
  CUevent events_[events]{};
  static inline int first_line_ = 0;  // of the operations
  CUdeviceptr buffers_[buffers]{};
};

// Tells that the host function has started.
void start(void* started) { static_cast<std::atomic<bool>*>(started)->store(true); }

// The compiler must not leave out reads of bytes that nothing uses.
void* (*const volatile copy_bytes)(void*, const void*, std::size_t) = std::memcpy;

// All calls and accesses of an operation, on one line of the source.
#define PERFORM()                                                                                                  \
  switch (o.what) {                                                                                                \
    case act::fill: return cuMemsetD8Async(to, 1, n, s);                                                           \
    case act::copy: return cuMemcpyAsync(to, from, n, s);                                                          \
    case act::copy_rows: return cuMemcpy2DAsync(&rows_of_copy, s);                                                 \
    case act::record: return cuEventRecord(event, s);                                                              \
    case act::wait: return cuStreamWaitEvent(s, event, 0);                                                         \
    case act::allocate: {                                                                                          \
      const CUresult r = cuMemAllocAsync(&buffers_[o.to], buffer_bytes, s);                                        \
      return r == CUDA_SUCCESS ? cuMemsetD8Async(buffers_[o.to], 0, buffer_bytes, s) : r;                          \
    }                                                                                                              \
    case act::release: return cuMemFreeAsync(buffers_[o.to], s);                                                   \
    case act::call: {                                                                                              \
      std::atomic<bool> started{false};                                                                            \
      const CUresult r = cuLaunchHostFunc(s, &start, &started);                                                    \
      while (r == CUDA_SUCCESS && !started) usleep(10);                                                            \
      return r;                                                                                                    \
    }                                                                                                              \
    case act::graph: {                                                                                             \
      for (int k = 0; k < 3; ++k)                                                                                  \
        if (const CUresult r = cuGraphAddKernelNode(&g.nodes[k], g.graph, nullptr, 0, &g.parameters[k])) return r; \
      return launch(g, o.edges, s);                                                                                \
    }                                                                                                              \
    case act::fill_now: return cuMemsetD8(to, 1, n);                                                               \
    case act::copy_now: return cuMemcpyDtoD(to, from, n);                                                          \
    case act::upload_now: return cuMemcpyHtoD(to, pageable, n);                                                    \
    case act::download_now: return cuMemcpyDtoH(pageable, from, n);                                                \
    case act::wait_for_stream: return cuStreamSynchronize(s);                                                      \
    case act::wait_for_event: return cuEventSynchronize(event);                                                    \
    case act::wait_for_device: return cuCtxSynchronize();                                                          \
    case act::query_stream: return cuStreamQuery(s);                                                               \
    case act::query_event: return cuEventQuery(event);                                                             \
    case act::read: return copy_bytes(pageable, reinterpret_cast<void*>(from), n), CUDA_SUCCESS;                   \
    case act::write: return copy_bytes(reinterpret_cast<void*>(to), pageable, n), CUDA_SUCCESS;                    \
    default: return cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, s, arguments.data(), nullptr);                    \
  }

CUresult machine::perform(int number, const operation& o) {
  char pageable[buffer_bytes] = {};
  const CUstream s = streams_[o.stream];
  const CUevent event = events_[o.event];
  const int device = streams[o.stream].device;
  launch_arguments own = arguments_of(o);
  const CUdeviceptr to = buffers_[o.to] + o.to_at, from = buffers_[o.from] + o.from_at;
  const std::size_t n = o.bytes;
  std::array<void*, 3> arguments = own.pointers();
  const CUfunction kernel = is_kernel(o.what) ? kernel_of(device, o.what) : nullptr;
  CUDA_MEMCPY2D rows_of_copy{};
  rows_of_copy.srcMemoryType = rows_of_copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows_of_copy.srcDevice = from, rows_of_copy.srcPitch = pitch_of_from;
  rows_of_copy.dstDevice = to, rows_of_copy.dstPitch = pitch_of_to;
  rows_of_copy.WidthInBytes = n, rows_of_copy.Height = rows;
  made_graph g;
  if (o.what == act::graph) prepare(g, device, o.nodes);
  // clang-format off
  first_line_ = __LINE__ + 2;
  switch (number) {
    case 0: PERFORM()
    case 1: PERFORM()
    case 2: PERFORM()
    case 3: PERFORM()
    case 4: PERFORM()
    case 5: PERFORM()
    case 6: PERFORM()
    case 7: PERFORM()
    case 8: PERFORM()
    case 9: PERFORM()
    case 10: PERFORM()
    case 11: PERFORM()
    case 12: PERFORM()
    case 13: PERFORM()
    case 14: PERFORM()
    case 15: PERFORM()
    case 16: PERFORM()
    case 17: PERFORM()
    case 18: PERFORM()
    case 19: PERFORM()
    case 20: PERFORM()
    case 21: PERFORM()
    case 22: PERFORM()
    case 23: PERFORM()
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  // clang-format on
}

static_assert(most_operations == 24);

const char* name_of(act a) {
  constexpr const char* names[] = {"get_bytes",
                                   "set_bytes",
                                   "copy_bytes",
                                   "add_bytes",
                                   "add_words",
                                   "fill",
                                   "copy",
                                   "copy_rows",
                                   "record",
                                   "wait",
                                   "allocate",
                                   "release",
                                   "call",
                                   "graph",
                                   "fill_now",
                                   "copy_now",
                                   "upload_now",
                                   "download_now",
                                   "wait_for_stream",
                                   "wait_for_event",
                                   "wait_for_device",
                                   "query_stream",
                                   "query_event",
                                   "read",
                                   "write"};
  static_assert(std::size(names) == static_cast<std::size_t>(act::acts));
  return names[static_cast<int>(a)];
}

std::string text_of(const memory_use& u) {
  constexpr const char* buffer_names[] = {"first",  "second",       "peer",       "pool 0", "pool 1",
                                          "pinned", "other pinned", "registered", "managed"};
  std::ostringstream out;
  out << name_of(u.what);
  const auto range = [&](const char* word, int buffer, int at, int bytes) {
    out << word << buffer_names[buffer] << '[' << at << ", " << at + bytes << ')';
  };
  if (has_to(u.what)) range(" to ", u.to, u.to_at, u.bytes);
  if (has_from(u.what)) range(" from ", u.from, u.from_at, u.bytes);
  if (u.what == act::allocate || u.what == act::release) range(" of ", u.to, 0, buffer_bytes);
  return out.str();
}

std::string text_of(const std::vector<operation>& program) {
  constexpr const char* stream_names[] = {"legacy", "blocking",    "per-thread",    "a",
                                          "b",      "legacy of 1", "blocking of 1", "a of 1"};
  std::ostringstream out;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const operation& o = program[i];
    out << "  " << i << ": " << text_of(static_cast<const memory_use&>(o));
    if (o.what == act::graph) {
      for (const memory_use& node : o.nodes) out << " {" << text_of(node) << '}';
      out << (o.edges[0] ? " 0->1" : "") << (o.edges[1] ? " 0->2" : "") << (o.edges[2] ? " 1->2" : "");
    }
    if (o.what == act::record || o.what == act::wait || o.what == act::wait_for_event || o.what == act::query_event)
      out << " event " << o.event;
    if (o.what < act::wait_for_event || o.what == act::wait_for_device || o.what == act::query_stream)
      out << ", stream " << stream_names[o.stream];
    out << '\n';
  }
  return out.str();
}

int operation_of(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos || place.find("random_test.cpp") == std::string::npos) return -1;
  return machine::operation_at_line(std::atoi(place.c_str() + colon + 1));
}

// Runs a program and returns what is wrong with the findings; empty if nothing is.
std::string difference(machine& m, const std::vector<operation>& program) {
  oracle knows;
  m.run(program, knows);
  std::ostringstream out;
  std::set<std::pair<int, int>> wanted, got;
  for (const race& r : knows.races()) wanted.insert({r.earlier, r.later});
  for (const auto& f : hpe::cudart::take_findings()) {
    // The oracle does not know which bytes of a pool's memory have been written.
    if (f.kind == "never-written" && f.allocation && f.allocation->what.find("Async") != std::string::npos) continue;
    const int earlier = f.earlier ? operation_of(f.earlier->place) : -1;
    const int later = f.now ? operation_of(f.now->place) : -1;
    const std::pair<int, int> pair{std::min(earlier, later), std::max(earlier, later)};
    got.insert(pair);
    if (!wanted.contains(pair))
      out << "false: " << f.kind << " between " << pair.first << " and " << pair.second << ": " << f.sentence << '\n';
  }
  std::set<int> missed;
  for (const race& r : knows.races()) missed.insert(r.buffer);
  for (const race& r : knows.races())
    if (got.contains({r.earlier, r.later})) missed.erase(r.buffer);
  for (const race& r : knows.races())
    if (missed.contains(r.buffer))
      out << "missed: between " << r.earlier << " and " << r.later << " in buffer " << r.buffer << '\n';
  return out.str();
}

// Leaves out operations as long as the findings differ.
std::vector<operation> shrunk(machine& m, std::vector<operation> program) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = program.size(); i-- > 0;) {
      std::vector<operation> less = program;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      if (difference(m, less).empty()) continue;
      program = std::move(less);
      again = true;
    }
  }
  return program;
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

TEST(RandomPrograms, HaveTheFindingsThatTheOracleKnows) {
  machine m;
  (void)hpe::cudart::take_findings();
  const std::uint64_t first = number_in("HPE_TEST_SEED", 1), count = number_in("HPE_TEST_PROGRAMS", 600);
  constexpr std::uint64_t report_each = 5000;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const std::vector<operation> program = generator(seed).program();
    const std::string wrong = difference(m, program);
    if ((seed - first + 1) % report_each == 0) std::cerr << seed - first + 1 << " programs\n";
    if (wrong.empty()) continue;
    ++failures;
    const std::vector<operation> least = shrunk(m, program);
    ADD_FAILURE() << "HPE_TEST_SEED=" << seed << "\n"
                  << wrong << "the shortest program:\n"
                  << text_of(least) << difference(m, least);
  }
}

}  // namespace
