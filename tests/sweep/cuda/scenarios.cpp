// The memory operations of CUDA programs, in sizes that take milliseconds, and the environment variables of the
// programs.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "interpose/adopted_pointers.h"
#include "tests/sweep/cuda/runner.h"

namespace sweep {

namespace {

using arm_function = std::function<void()>;
using interpose_pointers = hpe::interpose::adopted_pointers;

constexpr std::size_t little = 5000;                         // in the driver's memory in every mode
constexpr std::size_t middle = 2 * mebibyte + 3 * 4096;      // in hpe memory in the modes in which hpe manages memory
constexpr std::size_t large = 6 * mebibyte;                  // three such arrays exceed HPE_DEVICE_MEMORY
constexpr std::size_t box_bytes = box_pitch * box_rows * 4;  // four planes

void allocations(program& p, const arm_function& arm) {
  arm();
  std::vector<array*> made = {p.allocate(little), p.allocate(middle), p.allocate(large), p.allocate_rows(5000, 300),
                              p.allocate_of_pool(middle)};
  for (array* const a : made)
    if (a != nullptr) p.fill(a, 0, 1000, 7);
  for (array* const a : made) {
    if (a == nullptr) continue;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    unsigned type = 0;
    if (p.call("cuMemGetAddressRange", [&] { return cuMemGetAddressRange(&base, &bytes, a->at + 5); }) &&
        (base != a->at || bytes < a->model.size()))
      p.report("cuMemGetAddressRange gives another range");
    if (p.call("cuPointerGetAttribute",
               [&] { return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a->at); }) &&
        type != CU_MEMORYTYPE_DEVICE)
      p.report("cuPointerGetAttribute gives another type");
  }
  std::size_t free = 0, total = 0;
  p.call("cuMemGetInfo", [&] { return cuMemGetInfo(&free, &total); });
  for (array* const a : made) p.free(a);
  array* const again = p.allocate(middle);
  if (again != nullptr) p.fill(again, 0, middle, 8);
  p.free(again);
}

// Memory that stays on its device takes the place of data of hpe memory.
void mappings(program& p, const arm_function& arm) {
  array* const a = p.allocate(large);
  array* const b = p.allocate(large);
  p.upload(a, 0, large, 1);
  p.fill(b, 0, large, 2);
  p.wait_for_all();
  arm();
  array* const stays = p.map(large);
  array* const c = p.allocate(little);
  if (c != nullptr) p.fill(c, 0, little, 3);
  p.launch(b, b, 5);
  p.wait_for_all();
  p.unmap(stays);
  p.launch(a, b, 6);
  p.download(a, 0, large);
}

void copies(program& p, const arm_function& arm) {
  array* const a = p.allocate(middle);
  array* const b = p.allocate(middle);
  array* const c = p.allocate(little);
  CUstream const stream = p.make_stream();
  p.upload(a, 0, middle, 1);
  p.fill(b, 0, middle, 2);
  arm();
  p.upload(a, 100, middle - 100, 3);
  p.upload(c, 0, little, 4);
  p.copy_any(b, 0, 3000, 5);
  p.download(a, 0, middle);
  p.download(c, 0, little);
  p.copy(b, a, middle);
  p.copy_peer(a, b, middle);
  p.wait_for_all();
  p.upload(b, 0, middle, 6, stream);
  p.copy(a, b, middle, stream);
  p.copy_peer(b, a, middle, stream);
  p.download(b, 0, middle, stream);
  p.upload(c, 7, 100, 7, stream);
  p.wait(stream);
  p.download(a, 0, middle);
}

void boxes(program& p, const arm_function& arm) {
  array* const a = p.allocate(std::max(box_bytes, middle));
  array* const b = p.allocate(std::max(box_bytes, middle));
  CUstream const stream = p.make_stream();
  p.upload(a, 0, middle, 1);
  p.upload(b, 0, middle, 2);
  arm();
  p.copy_rows(a, nullptr);
  p.copy_rows(b, a);
  p.copy_planes(b, nullptr);
  p.copy_planes(a, b);
  p.copy_peer_planes(b, a);
  p.wait_for_all();
  p.fill_rows(a, 77, stream);
  p.copy_rows(b, a, stream);
  p.copy_planes(a, b, stream);
  p.copy_peer_planes(b, a, stream);
  p.wait(stream);
}

void fills(program& p, const arm_function& arm) {
  array* const a = p.allocate(large);
  array* const c = p.allocate(little);
  CUstream const stream = p.make_stream();
  arm();
  p.fill(a, 0, large, 5);
  p.fill(a, 10, 1000, 6);
  p.fill_words(a, 5000, 123456789);
  p.wait_for_all();
  p.fill(a, 4 * mebibyte, mebibyte, 7, stream);
  p.fill_words(a, 300, 987654321, stream);
  p.fill_rows(a, 4711, stream);
  p.fill(c, 0, little, 8, stream);
  p.write_word(a, 42, stream);
  p.wait(stream);
}

// Launches use four arrays. The memory of an oversubscribed device has space for two of them.
void launches(program& p, const arm_function& arm) {
  array* const a = p.allocate(large);
  array* const b = p.allocate(large);
  array* const c = p.allocate(large);
  p.upload(a, 0, large, 1);
  p.fill(b, 0, large, 2);
  p.fill(c, 0, large, 3);
  CUstream const stream = p.make_stream();
  p.wait_for_all();
  arm();
  p.launch(b, a, 5, stream);
  p.launch(c, b, 6, stream);
  p.wait(stream);
  p.launch(a, c, 7);
  p.wait_for_all();
  p.launch(a, a, 8, stream);
  p.end_stream(stream);
}

// hpe has no PTX of these kernels. In the mode "spilled", all hpe memory must be mapped for them (HPE_SCOPE=auto).
void unknown_kernels(program& p, const arm_function& arm) {
  array* const a = p.allocate(large);
  array* const b = p.allocate(large);
  p.upload(a, 0, large, 1);
  p.fill(b, 0, large, 2);
  CUstream const stream = p.make_stream();
  p.wait_for_all();
  arm();
  p.launch_unknown(a, 5, stream);
  p.launch(b, a, 6, stream);
  p.launch_unknown(b, 7, stream);
  p.wait(stream);
  p.launch_unknown(a, 8);
  p.download(b, 0, large);
}

// Seven arrays exceed the memory limits of the device and the host together (HPE_DEVICE_MEMORY, HPE_HOST_MEMORY), so
// the mode "spilled" moves data from and to its file.
void many_arrays(program& p, const arm_function& arm) {
  std::vector<array*> all;
  for (std::uint8_t n = 0; n < 7; ++n) p.fill(all.emplace_back(p.allocate(large)), 0, large, n);
  p.wait_for_all();
  arm();
  for (unsigned n = 0; n < all.size(); ++n) p.launch(all[n], all[(n + 1) % all.size()], n);
  p.copy(all[1], all[5], large);
  p.wait_for_all();
  p.upload(all[3], mebibyte, mebibyte, 9);
  p.read_by_cpu(all[2], 0, 5000);
  p.free(all[1]);
  p.launch(all[6], all[3], 8);
  p.download(all[6], 0, large);
}

// Events, per-thread streams and contexts of the program end while hpe has records about them.
void streams(program& p, const arm_function& arm) {
  array* const a = p.allocate(middle);
  array* const b = p.allocate(middle);
  p.fill(a, 0, middle, 1);
  p.fill(b, 0, middle, 2);
  p.wait_for_all();
  arm();
  CUstream const first = p.make_stream();
  CUstream const second = p.make_stream();
  if (first == nullptr || second == nullptr) return;
  CUevent between = nullptr;
  if (p.call("cuEventCreate", [&] { return cuEventCreate(&between, CU_EVENT_DISABLE_TIMING); }))
    p.at_end([&p, between] { p.call("cuEventDestroy", [&] { return cuEventDestroy(between); }); });
  p.launch(a, a, 3, first);
  const bool follows = between != nullptr && p.call("cuEventRecord", [&] { return cuEventRecord(between, first); }) &&
                       p.call("cuStreamWaitEvent", [&] { return cuStreamWaitEvent(second, between, 0); });
  if (!follows && !p.call("cuStreamSynchronize", [&] { return cuStreamSynchronize(first); }))
    return p.unknown(b, 0, middle);
  p.launch(b, a, 4, second);
  p.end_stream(first);
  p.wait(second);
  p.end_stream(second);
  CUcontext own = nullptr, before = nullptr;
  (void)cuCtxGetCurrent(&before);
  if (!p.call("cuCtxCreate", [&] { return cuCtxCreate(&own, nullptr, 0, 0); })) return;
  p.fill(a, 0, 4096, 9);
  p.wait_for_all();
  p.call("cuCtxDestroy", [&] { return cuCtxDestroy(own); });
  (void)cuCtxSetCurrent(before);
}

void graphs(program& p, const arm_function& arm) {
  array* const a = p.allocate(middle);
  array* const b = p.allocate(middle);
  CUstream const stream = p.make_stream();
  p.upload(a, 0, middle, 1);
  p.fill(b, 0, middle, 2);
  p.wait_for_all();
  CUcontext context = nullptr;
  (void)cuCtxGetCurrent(&context);
  arm();
  CUgraph graph = nullptr;
  CUgraphExec instance = nullptr;
  if (!p.call("cuGraphCreate", [&] { return cuGraphCreate(&graph, 0); })) return;
  p.at_end([&p, graph] { p.call("cuGraphDestroy", [&] { return cuGraphDestroy(graph); }); });
  CUgraphNode copied = nullptr, filled = nullptr, added = nullptr;
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = a->at;
  c.dstDevice = b->at;
  c.srcPitch = c.dstPitch = c.WidthInBytes = middle;
  c.srcHeight = c.dstHeight = c.Height = c.Depth = 1;
  CUDA_MEMSET_NODE_PARAMS f{};
  f.dst = b->at;
  f.value = 0x05050505;
  f.elementSize = 4;
  f.width = 1000;
  f.height = 1;
  unsigned value = 3, distance = 1024;
  void* parameters[] = {&b->at, &b->at, &value, &distance};
  CUDA_KERNEL_NODE_PARAMS k{};
  k.func = p.kernel();
  k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimY = k.blockDimZ = 1;
  k.blockDimX = 64;
  k.kernelParams = parameters;
  const bool whole =
      p.call("cuGraphAddMemcpyNode", [&] { return cuGraphAddMemcpyNode(&copied, graph, nullptr, 0, &c, context); }) &&
      p.call("cuGraphAddMemsetNode", [&] { return cuGraphAddMemsetNode(&filled, graph, &copied, 1, &f, context); }) &&
      p.call("cuGraphAddKernelNode", [&] { return cuGraphAddKernelNode(&added, graph, &filled, 1, &k); });
  if (!whole || !p.call("cuGraphInstantiate", [&] { return cuGraphInstantiate(&instance, graph, 0); })) return;
  p.at_end([&p, instance] { p.call("cuGraphExecDestroy", [&] { return cuGraphExecDestroy(instance); }); });
  const auto launched = [&] {
    if (!p.call("cuGraphLaunch", [&] { return cuGraphLaunch(instance, stream); })) return p.unknown(b, 0, middle);
    std::copy_n(a->model.begin(), middle, b->model.begin());
    b->known = a->known;
    p.known(b, 0, std::vector<std::uint8_t>(4000, 5));
    p.unknown(b, 0, 1);
    for (std::size_t n = 0; n < 64; ++n) p.unknown(b, n * 4096, 4);
  };
  launched();
  c.WidthInBytes = middle;
  p.call("cuGraphExecMemcpyNodeSetParams",
         [&] { return cuGraphExecMemcpyNodeSetParams(instance, copied, &c, context); });
  launched();
  p.wait(stream);
  // Work that a capture records; the stand-in runs it at once.
  if (!p.call("cuStreamBeginCapture", [&] { return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL); }))
    return;
  p.fill(a, 0, middle, 6, stream);
  CUgraph captured = nullptr;
  p.repeat("cuStreamEndCapture", [&] { return cuStreamEndCapture(stream, &captured); });
}

// CPU code and calls of libc use the memory between kernels.
void touches(program& p, const arm_function& arm) {
  array* const a = p.allocate(middle);
  array* const b = p.allocate(little);
  p.upload(a, 0, middle, 1);
  p.upload(b, 0, little, 2);
  const int file = ::memfd_create("values", MFD_CLOEXEC);
  const auto there = program::pattern(mebibyte, 9);
  (void)!::pwrite(file, there.data(), there.size(), 0);
  p.at_end([file] { ::close(file); });
  arm();
  p.read_by_cpu(a, 1000, 5000);
  p.write_by_cpu(a, 100, 5000, 3);
  p.launch(a, a, 4);
  p.write_by_cpu(b, 10, 100, 5);
  p.wait_for_all();
  p.read_by_cpu(a, 0, 20000);
  p.read_file(a, file, mebibyte);
  p.launch(a, a, 5);
  p.download(b, 0, little);
  p.read_by_cpu(a, mebibyte, 5000);
}

// Makes the calls that hpe's MPI_Send and MPI_Recv make for device memory (interpose/mpi).
void messages(program& p, const arm_function& arm) {
  // An array of this size is in the driver's memory in every mode. MPI accesses hpe memory like CPU code.
  constexpr std::size_t middle = 200 << 10;
  array* const a = p.allocate(middle);
  array* const b = p.allocate(middle);
  array* const c = p.allocate(little);
  array* const d = p.allocate(little);
  if (a != nullptr) p.upload(a, 0, middle, 1);
  if (b != nullptr) p.upload(b, 0, middle, 2);
  if (c != nullptr) p.upload(c, 0, little, 3);
  interpose_pointers* const pointers = interpose_pointers::instance();
  if (pointers == nullptr && !injected().fired()) p.report("hpe does not serve the memory");
  if (a == nullptr || b == nullptr || c == nullptr || d == nullptr || pointers == nullptr) return;
  arm();
  std::vector<std::uint8_t> host(middle, 0);
  if (p.call_or_throw("read", [&] { pointers->read(host.data(), a->at, middle); }) && host != a->model)
    p.report("a message has other bytes than the memory");
  const auto sent = program::pattern(middle, 3);
  const auto sets = [&](array* to, const std::vector<std::uint8_t>& bytes, const char* name, const auto& call) {
    if (p.call_or_throw(name, call))
      p.known(to, 0, bytes);
    else
      p.unknown(to, 0, bytes.size());
  };
  sets(b, sent, "write", [&] { pointers->write(b->at, sent.data(), middle); });
  // Packs the first 8 of each 16 bytes. If a copy fails, the error may come only with the next use of the packed bytes.
  // If hpe's kernels could not be loaded, pack() leaves the work to the caller.
  std::vector<std::uint8_t> packed;
  const auto source = [](std::size_t i) { return i / 8 * 16 + i % 8; };
  for (std::size_t i = 0; i < 2400; ++i) packed.push_back(c->model[source(i)]);
  sets(d, packed, "pack", [&] {
    const auto half = std::make_shared<const std::vector<hpe::interpose::stretch>>(1, hpe::interpose::stretch{0, 8});
    for (std::size_t begin = 0; begin < packed.size(); begin += 800)
      if (!pointers->pack(d->at + begin, c->at + 2 * begin, {half, 8, 16}, 800)) {
        if (!injected().fired()) p.report("the memory is not packed");
        std::vector<std::uint8_t> some(1600);
        pointers->read(some.data(), c->at + 2 * begin, some.size());
        for (std::size_t i = 0; i < 800; ++i) some[i] = some[source(i)];
        pointers->write(d->at + begin, some.data(), 800);
      }
    static_cast<void>(pointers->share(d->at, packed.size(), interpose_pointers::peer_use::read, 0));
  });
  for (std::size_t i = 0; i < packed.size(); ++i) d->known[i] &= c->known[source(i)];
  std::byte* chunk = nullptr;
  constexpr std::size_t chunk_bytes = 64 << 10;
  if (p.call_or_throw("borrow", [&] { chunk = pointers->borrow(chunk_bytes); })) {
    // The host memory must not be used before the copy is done, even if a wait fails.
    hpe::interpose::device_copy read, written;
    if (p.call_or_throw("start_read", [&] { read = pointers->start_read(chunk, b->at, chunk_bytes); }) &&
        p.call_or_throw("wait", [&] { read.wait(); })) {
      const std::vector<std::uint8_t> got(reinterpret_cast<std::uint8_t*>(chunk),
                                          reinterpret_cast<std::uint8_t*>(chunk) + chunk_bytes);
      for (std::size_t i = 0; i < got.size(); ++i)
        if (b->known[i] != 0 && b->model[i] != got[i]) {
          p.report("a chunk has other bytes than the memory");
          break;
        }
      sets(a, got, "start_write", [&] {
        written = pointers->start_write(a->at, chunk, chunk_bytes);
        written.wait();
      });
      for (std::size_t i = 0; i < got.size(); ++i) a->known[i] &= b->known[i];
    }
    p.at_end([pointers, chunk] { pointers->give_back(chunk, chunk_bytes); });
  }
  p.call_or_throw("share", [&] {
    if (pointers->share(a->at, middle, interpose_pointers::peer_use::read, pointers->queued_now()))
      pointers->overwritten(a->at, middle);
  });
  std::shared_ptr<std::byte> beside;
  p.call_or_throw("borrow_beside", [&] { beside = pointers->borrow_beside(a->at, mebibyte); });
  p.download(b, 0, middle);
}

// A program whose calls may fail from its first call of the driver to the end of the process.
void whole_life(program& p, const arm_function& /*arm*/) {
  array* const a = p.allocate(middle);
  array* const b = p.allocate(little);
  if (a == nullptr || b == nullptr) return;
  p.upload(a, 0, middle, 1);
  p.launch(a, a, 2);
  p.copy(b, a, little);
  p.read_by_cpu(a, 0, 100);
  p.wait_for_all();
  p.download(a, 0, middle);
  messages(p, [] {});
  p.free(b);
  p.free(a);
  p.end();
}

struct mode {
  const char* name;
  std::vector<std::pair<const char*, const char*>> variables;
};

}  // namespace

std::span<const scenario> scenarios() {
  static const std::vector<scenario> all = [] {
    const mode modes[] = {
        {"plain", {}},
        {"oversubscribed", {{"HPE_OVERSUBSCRIBE", "on"}, {"HPE_DEVICE_MEMORY", "16M"}, {"HPE_SCOPE", "args"}}},
        {"spread", {{"HPE_SPREAD", "1"}, {"HPE_SPREAD_CUT", "even"}}},
        {"both",
         {{"HPE_OVERSUBSCRIBE", "on"},
          {"HPE_DEVICE_MEMORY", "16M"},
          {"HPE_SCOPE", "args"},
          {"HPE_SPREAD", "1"},
          {"HPE_SPREAD_CUT", "even"}}},
        {"spilled",
         {{"HPE_OVERSUBSCRIBE", "on"},
          {"HPE_DEVICE_MEMORY", "16M"},
          {"HPE_SCOPE", "auto"},
          {"HPE_HOST_MEMORY", "16M"},
          {"HPE_SPILL", "/dev/shm"}}}};
    const std::pair<const char*, void (*)(program&, const arm_function&)> parts[] = {
        {"allocations", allocations},
        {"mappings", mappings},
        {"copies", copies},
        {"boxes", boxes},
        {"fills", fills},
        {"launches", launches},
        {"unknown_kernels", unknown_kernels},
        {"many_arrays", many_arrays},
        {"streams", streams},
        {"graphs", graphs},
        {"touches", touches},
        {"messages", messages},
        {"life", whole_life}};
    std::vector<scenario> result;
    for (const mode& m : modes)
      for (const auto& [name, run] : parts)
        result.push_back({std::string(m.name) + "." + name, m.variables, run, run == whole_life});
    return result;
  }();
  return all;
}

}  // namespace sweep
