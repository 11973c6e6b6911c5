// How fast data moves between the host and GPUs through one pointer, beside what a program would write instead: copies
// of pinned and pageable memory, and managed memory. Every ratio is of medians taken in this run.

#include <dlfcn.h>
#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "bench/measure.h"
#include "hpe/hpe.hpp"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/open.h"
#include "tests/core/kernels.h"

namespace {

using hpe::bench::median_seconds;
using hpe::bench::result;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t stream_bytes = 1024 * mebi;
constexpr std::size_t page = 4096;
constexpr unsigned crowd = 8;
constexpr std::uint32_t tiles = 1024;

volatile std::uint64_t sink;

/// What hpe itself does not call.
template <class Function>
Function entry(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(::dlsym(library, name));
}
#define CALL(name, ...)                                                   \
  do {                                                                    \
    static const auto function = entry<decltype(&::name)>(name_of(name)); \
    check(function(__VA_ARGS__), #name);                                  \
  } while (false)
#define name_of(name) name_of_expanded(name)
#define name_of_expanded(name) #name

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fmt::print(stderr, "{} failed: CUDA error {}\n", what, static_cast<int>(result));
  std::exit(1);  // NOLINT(concurrency-mt-unsafe)
}

std::uint32_t fresh_seed() {
  static std::mt19937 random(std::random_device{}());
  return random();
}

// The two ways of going through memory on the host.
void touch_pages(const std::byte* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += page) sum += static_cast<std::uint64_t>(data[i]);
  sink = sum;
}

template <class Body>
void in_crowd(std::size_t bytes, std::size_t chunk, Body body) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < crowd; ++t)
    threads.emplace_back([&] {
      for (std::size_t at = 0; (at = next.fetch_add(chunk)) < bytes;) body(at, std::min(chunk, bytes - at));
    });
}

void read_all(const std::byte* data, std::size_t bytes) {
  in_crowd(bytes, mebi, [&](std::size_t at, std::size_t size) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(data + at);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < size / sizeof *words; ++i) sum += words[i];
    sink = sum;
  });
}

void write_pages(std::byte* data, std::size_t bytes) {
  const auto value = static_cast<std::byte>(fresh_seed());
  for (std::size_t i = 0; i < bytes; i += page) data[i] = value;
}

void write_all(std::byte* data, std::size_t bytes) {
  const int value = static_cast<int>(fresh_seed() & 255);
  in_crowd(bytes, 8 * mebi, [&](std::size_t at, std::size_t size) { std::memset(data + at, value, size); });
}

/// The GPU without hpe: its own memory, pinned and pageable host memory, and the kernels of the tests.
class raw_gpu {
 public:
  explicit raw_gpu(int number) {
    CALL(cuInit, 0);
    CUdevice device = 0;
    CALL(cuDeviceGet, &device, number);
    CALL(cuDevicePrimaryCtxRetain, &context_, device);
    use();
    CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CALL(cuMemAlloc, &memory, stream_bytes);
    void* const kernels = ::dlopen(test_kernels_path(), RTLD_NOW);
    CUmodule module = nullptr;
    CALL(cuModuleLoadData, &module, ::dlsym(kernels, "hpe_cuda_image"));
    CALL(cuModuleGetFunction, &fill_, module, "fill");
    CALL(cuModuleGetFunction, &nothing_, module, "nothing");
  }
  void use() const { CALL(cuCtxSetCurrent, context_); }
  void finish() const { CALL(cuStreamSynchronize, stream); }

  void fill(void* data, std::size_t bytes) const {
    fill_parameters p{static_cast<std::uint32_t*>(data), bytes / 4, fresh_seed()};
    void* parameters[] = {&p};
    CALL(cuLaunchKernel, fill_, tiles, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
  }
  void nothing() const {
    crash_parameters p{nullptr};
    void* parameters[] = {&p};
    CALL(cuLaunchKernel, nothing_, 1, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
  }

  CUstream stream = nullptr;
  CUdeviceptr memory = 0;

 private:
  CUcontext context_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction nothing_ = nullptr;
};

CUdeviceptr as_device(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

class table {
 public:
  explicit table(unsigned repeats) : repeats(repeats) {}

  double rate(const std::string& what, std::size_t bytes, double seconds) {
    const double value = static_cast<double>(bytes) / seconds / 1e9;
    lines.push_back({what, value, "GB/s", "", true});
    return value;
  }
  void ratio(const std::string& what, double value, double bar) {
    lines.push_back({what, value, "x", fmt::format(">= {}", bar), value >= bar});
  }
  void time(const std::string& what, double seconds, double bar_seconds = 0) {
    const bool has_bar = bar_seconds > 0;
    lines.push_back({what, seconds * 1e6, "us", has_bar ? fmt::format("<= {:.1f}", bar_seconds * 1e6) : "",
                     !has_bar || seconds <= bar_seconds});
  }

  const unsigned repeats;
  std::vector<result> lines;
};

struct link_rates {
  double up;
  double down;
};

link_rates plain_copies(table& t, const raw_gpu& gpu) {
  void* pinned = nullptr;
  CALL(cuMemHostAlloc, &pinned, stream_bytes, 0);
  std::memset(pinned, 1, stream_bytes);
  const auto up = [&](const void* from) {
    CALL(cuMemcpyHtoDAsync, gpu.memory, from, stream_bytes, gpu.stream);
    gpu.finish();
  };
  const auto down = [&](void* to) {
    CALL(cuMemcpyDtoHAsync, to, gpu.memory, stream_bytes, gpu.stream);
    gpu.finish();
  };
  link_rates result{};
  result.up = t.rate("copy of pinned memory to the GPU", stream_bytes,
                     median_seconds(
                         t.repeats, [] {}, [&] { up(pinned); }));
  result.down = t.rate("copy of pinned memory from the GPU", stream_bytes,
                       median_seconds(
                           t.repeats, [] {}, [&] { down(pinned); }));
  CALL(cuMemFreeHost, pinned);
  std::vector<std::byte> pageable(stream_bytes, std::byte{1});
  t.rate("copy of pageable memory to the GPU", stream_bytes,
         median_seconds(
             t.repeats, [] {}, [&] { up(pageable.data()); }));
  t.rate("copy of pageable memory from the GPU", stream_bytes,
         median_seconds(
             t.repeats, [] {}, [&] { down(pageable.data()); }));
  return result;
}

void managed_memory(table& t, const raw_gpu& gpu, const link_rates& is) {
  CUdeviceptr memory = 0;
  CALL(cuMemAllocManaged, &memory, stream_bytes, CU_MEM_ATTACH_GLOBAL);
  auto* const data = reinterpret_cast<std::byte*>(memory);  // NOLINT(performance-no-int-to-ptr)
  const auto kernel_writes = [&] {
    gpu.fill(data, stream_bytes);
    gpu.finish();
  };
  const double read = t.rate("managed memory: host reads what a kernel wrote, 1 thread", stream_bytes,
                             median_seconds(t.repeats, kernel_writes, [&] { touch_pages(data, stream_bytes); }));
  const double write = t.rate("managed memory: host writes, a kernel uses it, 1 thread", stream_bytes,
                              median_seconds(t.repeats, kernel_writes, [&] {
                                write_pages(data, stream_bytes);
                                kernel_writes();
                              }));
  t.lines.push_back({"  of the link", read / is.down, "x", "", true});
  t.lines.push_back({"  of the link", write / is.up, "x", "", true});
  CALL(cuMemFree, memory);
}

void launch_fill(const hpe::array<std::uint32_t>& a) {
  hpe::launch(test_kernel().fill, hpe::grid(tiles), {a.data(), a.size(), fresh_seed()}, hpe::out(a));
  hpe::synchronize();
}

void host_reads(table& t, const link_rates& is) {
  constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);
  std::unique_ptr<hpe::array<std::uint32_t>> a;
  const auto bytes = [&] { return reinterpret_cast<const std::byte*>(a->data()); };
  const auto fresh = [&] {
    a.reset();
    a = std::make_unique<hpe::array<std::uint32_t>>(words);
    launch_fill(*a);
  };
  const auto again = [&] { launch_fill(*a); };
  const auto touch = [&] { touch_pages(bytes(), stream_bytes); };
  const auto all = [&] { read_all(bytes(), stream_bytes); };
  const auto line = [&](const std::string& what, double bar, const std::function<void()>& prepare,
                        const std::function<void()>& body) {
    const double rate =
        t.rate("host reads what a kernel wrote, " + what, stream_bytes, median_seconds(t.repeats, prepare, body));
    t.ratio("  of the link", rate / is.down, bar);
  };
  line("new memory, 1 thread", 0.88, fresh, touch);
  line("1 thread touching pages", 0.95, again, touch);
  line("8 threads reading all", 0.95, again, all);
  a.reset();
}

void host_writes(table& t, const link_rates& is) {
  const hpe::array<std::uint32_t> a(stream_bytes / sizeof(std::uint32_t));
  auto* const data = reinterpret_cast<std::byte*>(a.data());
  write_all(data, stream_bytes);
  const auto prepare = [&] {
    launch_fill(a);
    read_all(data, stream_bytes);  // both copies are good
  };
  const auto use = [&] {
    hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr}, hpe::in(a));
    hpe::synchronize();
  };
  const auto line = [&](const std::string& what, auto write) {
    const double rate =
        t.rate("host writes, a kernel reads, " + what, stream_bytes, median_seconds(t.repeats, prepare, [&] {
                 write();
                 use();
               }));
    t.ratio("  of the link", rate / is.up, 0.92);
  };
  line("1 thread touching pages", [&] { write_pages(data, stream_bytes); });
  line("8 threads filling all", [&] { write_all(data, stream_bytes); });
}

void copies(table& t, const link_rates& is) {
  const hpe::array<std::uint32_t> a(stream_bytes / sizeof(std::uint32_t));
  std::vector<std::byte> host(stream_bytes, std::byte{1});
  for (const std::size_t size : {64 * mebi, stream_bytes}) {
    const double up = t.rate(fmt::format("hpeMemcpy of pageable memory to the GPU, {} MiB", size / mebi), size,
                             median_seconds(
                                 t.repeats, [&] { launch_fill(a); },
                                 [&] {
                                   hpe::copy(a.data(), host.data(), size);
                                   hpe::synchronize();
                                 }));
    t.ratio("  of the pinned link", up / is.up, 0.88);
    const double down =
        t.rate(fmt::format("hpeMemcpy of pageable memory from the GPU, {} MiB", size / mebi), size,
               median_seconds(
                   t.repeats, [&] { launch_fill(a); }, [&] { hpe::copy(host.data(), a.data(), size); }));
    t.ratio("  of the pinned link", down / is.down, 0.88);
  }
}

void launches(table& t, const raw_gpu& gpu) {
  constexpr int count = 500;  // less than the driver queues without waiting
  const hpe::array<std::uint32_t> a(mebi);
  const hpe::array<std::uint32_t> b(mebi);
  const hpe::array<std::uint32_t> c(mebi);
  const auto times = hpe::bench::paired_medians(
      t.repeats * 3, [] { hpe::synchronize(); },
      [&] {
        for (int i = 0; i < count; ++i)
          hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr}, hpe::in(a), hpe::in(b), hpe::out(c));
      },
      [&] { gpu.finish(); },
      [&] {
        for (int i = 0; i < count; ++i) gpu.nothing();
      });
  hpe::synchronize();
  t.time("cuLaunchKernel, queued", times.second / count);
  t.time("launch with three accesses over that", (times.first - times.second) / count, 2e-6);
}

void faults(table& t, const raw_gpu& gpu) {
  const hpe::array<std::uint32_t> a(64 * mebi / sizeof(std::uint32_t));
  const std::size_t block = hpe::pointer_info(a.data()).block;
  const auto* const data = reinterpret_cast<const std::byte*>(a.data());
  touch_pages(data, 64 * mebi);
  void* pinned = nullptr;
  CALL(cuMemHostAlloc, &pinned, block, 0);
  std::vector<std::size_t> order;
  // Every fifth block, in an order that no prefetch follows.
  for (std::size_t b = 0; b < 64 * mebi / block; b += 5) order.push_back(b);
  std::shuffle(order.begin(), order.end(), std::mt19937(fresh_seed()));
  const auto times = hpe::bench::paired_medians(
      t.repeats, [&] { launch_fill(a); },
      [&] {
        std::uint64_t sum = 0;
        for (const std::size_t b : order) sum += static_cast<std::uint64_t>(data[b * block + 8]);
        sink = sum;
      },
      [] {},
      [&] {
        for (std::size_t i = 0; i < order.size(); ++i) {
          CALL(cuMemcpyDtoHAsync, pinned, gpu.memory, block, gpu.stream);
          gpu.finish();
        }
      });
  const double raw = times.second / static_cast<double>(order.size());
  t.time(fmt::format("copy of a block of {} KiB, waited for", block / 1024), raw);
  t.time("a fault on one, to the first byte", times.first / static_cast<double>(order.size()), 1.3 * raw + 10e-6);
  CALL(cuMemFreeHost, pinned);
}

void peers(table& t, const raw_gpu& first, const raw_gpu& second) {
  constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);
  const hpe::array<std::uint32_t> a(words, hpe::on_device(0));
  const hpe::array<std::uint32_t> b(words, hpe::on_device(1));
  const hpe::array<std::uint32_t> c(words, hpe::on_device(0));
  const hpe::array<std::uint32_t> d(words, hpe::on_device(1));
  for (const auto* each : {&a, &b, &c, &d}) {
    hpe::launch(test_kernel().fill, hpe::grid(tiles), {each->data(), words, fresh_seed()}, hpe::out(*each));
    hpe::synchronize();
  }
  // The same memory, by the driver's own call.
  const auto raw = [&](const raw_gpu& gpu, const hpe::array<std::uint32_t>& to, const hpe::array<std::uint32_t>& from) {
    gpu.use();
    CALL(cuMemcpyAsync, as_device(to.data()), as_device(from.data()), stream_bytes, gpu.stream);
  };
  const auto finish = [&] {
    first.finish();
    second.finish();
  };
  const auto one = hpe::bench::paired_medians(
      t.repeats, [] {},
      [&] {
        hpe::copy(b.data(), a.data(), stream_bytes);
        hpe::synchronize();
      },
      [] {},
      [&] {
        raw(second, b, a);
        finish();
      });
  t.rate("peer copy by the driver", stream_bytes, one.second);
  t.rate("peer copy by hpeMemcpy", stream_bytes, one.first);
  t.ratio("  of the driver's", one.second / one.first, 0.95);
  const auto two = hpe::bench::paired_medians(
      t.repeats, [] {},
      [&] {
        hpe::copy(b.data(), a.data(), stream_bytes);
        hpe::copy(c.data(), d.data(), stream_bytes);
        hpe::synchronize();
      },
      [] {},
      [&] {
        raw(second, b, a);
        raw(first, c, d);
        finish();
      });
  t.rate("both ways by the driver", 2 * stream_bytes, two.second);
  t.rate("both ways by hpeMemcpy", 2 * stream_bytes, two.first);
  t.ratio("  of the driver's", two.second / two.first, 0.95);
  first.use();
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      hpe::bench::parse(argc, argv, "transfers between the host and GPUs, against plain copies and managed memory");
  if (!hpe::device::cuda::present()) {
    fmt::print("transfers: there are no GPUs\n");
    return 0;
  }
  // hpe first: it takes its address space before others have any.
  const int devices = hpe::device_count();
  table t(arguments.repeats);
  const raw_gpu gpu(0);
  const link_rates is = plain_copies(t, gpu);
  managed_memory(t, gpu, is);
  host_reads(t, is);
  host_writes(t, is);
  copies(t, is);
  faults(t, gpu);
  launches(t, gpu);
  if (devices > 1) peers(t, gpu, raw_gpu(1));
  hpe::bench::print(fmt::format("transfers: {}, {} devices", hpe::device_info(0).name, devices), t.lines,
                    arguments.json);
  return 0;
}
