// Measures the cost of coherence relative to references on this machine. Streams in both directions are compared with
// memcpy, new device memory with the rate at which the operating system allocates pages, a launch with a bare command
// of the device, and a call stack for the profile with glibc's backtrace. The time to look up an address is measured
// too.

#include <execinfo.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "bench/common/measure.h"
#include "hpe/hpe.hpp"
#include "runtime/coherence/region_table.h"
#include "runtime/device/device.h"
#include "runtime/memory/granule_table.h"
#include "runtime/memory/uvas.h"
#include "runtime/trace/call_stack.h"
#include "tests/core/kernels.h"

namespace {

using hpe::bench::result;

constexpr std::size_t stream_bytes = std::size_t{256} << 20;
constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);

volatile std::uint64_t sink;

std::uint64_t sum_of(const void* p, std::size_t bytes) {
  const auto* data = static_cast<const std::uint64_t*>(p);
  return std::accumulate(data, data + bytes / sizeof(std::uint64_t), std::uint64_t{0});
}

// Maps memory of the kind that soft devices use. With the flag MAP_POPULATE, the operating system allocates all pages
// during the call.
std::byte* device_like_memory(int more_flags) {
  const auto file = hpe::os::create_memory_file("bench", stream_bytes);
  void* p = ::mmap(nullptr, stream_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | more_flags, file.get(), 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(p);
}

// The first kernel that writes new device memory waits until the operating system has allocated the pages. For
// comparison, one thread lets the operating system allocate as many pages of a file.
void new_pages(unsigned repeats, std::vector<result>& results) {
  std::unique_ptr<hpe::array<std::uint32_t>> a;
  const auto allocate = [&] {
    a.reset();
    a = std::make_unique<hpe::array<std::uint32_t>>(words);
  };
  const auto kernel_writes = [&] {
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a->data(), words, 1}, hpe::out(*a));
    hpe::synchronize();
  };
  std::byte* memory = nullptr;
  const auto without_pages = [&] {
    if (memory != nullptr) ::munmap(memory, stream_bytes);
    memory = device_like_memory(0);
  };
  const auto populate = [&] { hpe::os::populate_for_writing(memory, stream_bytes); };
  const auto times = hpe::bench::paired_medians(repeats, allocate, kernel_writes, without_pages, populate);
  ::munmap(memory, stream_bytes);
  results.push_back({"a kernel writes 256 MiB of new memory: rate / rate of making pages", times.second / times.first,
                     "x", ">= 0.9", times.second / times.first >= 0.9});
  results.push_back({"  the kernel", stream_bytes / times.first / 1e9, "GB/s", "", true});
  results.push_back({"  one thread makes pages", stream_bytes / times.second / 1e9, "GB/s", "", true});
}

void streams(unsigned repeats, std::vector<result>& results) {
  std::byte* device_memory = device_like_memory(MAP_POPULATE);
  std::vector<std::byte> destination(stream_bytes);
  std::uint32_t seed = std::random_device{}();
  const auto poison = [&] {
    auto* data = reinterpret_cast<std::uint32_t*>(device_memory);
    for (std::size_t i = 0; i < words; ++i) data[i] = seed + static_cast<std::uint32_t>(i);
    ++seed;
  };
  const auto plain_copy = [&] { std::memcpy(destination.data(), device_memory, stream_bytes); };

  const hpe::array<std::uint32_t> a(words);
  const auto kernel_writes = [&] {
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), words, ++seed}, hpe::out(a));
    hpe::synchronize();
  };
  const auto host_reads = [&] { sink = sum_of(a.data(), stream_bytes); };
  const auto read = hpe::bench::paired_medians(repeats, kernel_writes, host_reads, poison, plain_copy);
  results.push_back({"host reads 256 MiB that a kernel wrote: rate / rate of memcpy", read.second / read.first, "x",
                     ">= 0.8", read.second / read.first >= 0.8});
  results.push_back({"  the read", stream_bytes / read.first / 1e9, "GB/s", "", true});
  results.push_back({"  memcpy from the device's memory", stream_bytes / read.second / 1e9, "GB/s", "", true});

  const auto host_writes_kernel_reads = [&] {
    for (std::size_t i = 0; i < words; ++i) a[i] = seed;
    hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr}, hpe::in(a));
    hpe::synchronize();
  };
  // The host has a valid copy, so that hpe transfers nothing before the timed stores.
  const auto both_have_it = [&] {
    a[0] = ++seed;
    host_writes_kernel_reads();
  };
  const auto write = hpe::bench::paired_medians(repeats, both_have_it, host_writes_kernel_reads, poison, plain_copy);
  results.push_back({"host writes 256 MiB that a kernel reads: rate / rate of memcpy", write.second / write.first, "x",
                     ">= 0.7", write.second / write.first >= 0.7});
  // Times the same loop over ordinary memory, alone and while another thread copies as many bytes as hpe uploads. hpe's
  // uploads can overlap with this loop, but cannot shorten it.
  auto* const plain = reinterpret_cast<std::uint32_t*>(destination.data());
  const auto stores = [&] {
    for (std::size_t i = 0; i < words; ++i) plain[i] = seed;
    sink = plain[seed % words];
  };
  const auto stores_alone = hpe::bench::paired_medians(
      repeats, [&] { ++seed; }, stores, poison, plain_copy);
  results.push_back({"  the host's writes alone", stores_alone.second / stores_alone.first, "x", "", true});
  std::vector<std::byte> uploaded(stream_bytes);
  const std::vector<std::byte> written(stream_bytes, std::byte{1});
  const auto stores_beside_copy = [&] {
    std::jthread copy([&] { std::memcpy(uploaded.data(), written.data(), stream_bytes); });
    stores();
  };
  const auto both = hpe::bench::paired_medians(
      repeats, [&] { ++seed; }, stores_beside_copy, poison, plain_copy);
  results.push_back(
      {"  the host's writes while another thread copies as much", both.second / both.first, "x", "", true});
  const auto lazily = [&] {
    hpe::advise(a.data(), HPE_ADVISE_LAZY);
    both_have_it();
  };
  const auto lazy = hpe::bench::paired_medians(repeats, lazily, host_writes_kernel_reads, poison, plain_copy);
  results.push_back({"  the same, uploaded at the launch (lazy)", lazy.second / lazy.first, "x", "", true});
  hpe::advise(a.data(), HPE_ADVISE_DEFAULT);

  const auto copy_out = hpe::bench::paired_medians(
      repeats, kernel_writes, [&] { hpe::copy(destination.data(), a.data(), stream_bytes); }, poison, plain_copy);
  results.push_back(
      {"hpeMemcpy device to host, 256 MiB: rate / rate of memcpy", copy_out.second / copy_out.first, "x", "", true});
  const auto copy_in = hpe::bench::paired_medians(
      repeats, kernel_writes,
      [&] {
        hpe::copy(a.data(), destination.data(), stream_bytes);
        hpe::synchronize();
      },
      poison, plain_copy);
  results.push_back(
      {"hpeMemcpy host to device, 256 MiB: rate / rate of memcpy", copy_in.second / copy_in.first, "x", "", true});
  ::munmap(device_memory, stream_bytes);
}

void launches(unsigned repeats, std::vector<result>& results) {
  constexpr int count = 2000;
  // A bare command goes through the same ring to the same device process, without coherence and ordering.
  const hpe::memory::uvas space(0, std::size_t{1} << 30, 1);
  const auto bare = hpe::device::open_devices("soft:1", space.layout());
  const auto nothing = bare->find_kernel(bare->load_module(test_kernels_path()), "nothing");
  auto& stream = bare->at(0).create_stream(hpe::device::priority::launch);
  const crash_parameters none{nullptr};
  const auto forever = std::chrono::steady_clock::time_point::max();
  const auto bare_commands = [&] {
    for (int i = 0; i < count; ++i) bare->wait(stream.launch(nothing, {}, std::as_bytes(std::span(&none, 1))), forever);
  };

  const hpe::array<std::uint32_t> a(1 << 20);
  const hpe::array<std::uint32_t> b(1 << 20);
  const hpe::array<std::uint32_t> c(1 << 20);
  const auto launches = [&] {
    for (int i = 0; i < count; ++i) {
      hpe::launch(test_kernel().nothing, hpe::grid(1), none, hpe::in(a), hpe::in(b), hpe::out(c));
      hpe::synchronize();
    }
  };
  const auto prepare = [&] { launches(); };
  const auto times = hpe::bench::paired_medians(repeats, prepare, launches, bare_commands, bare_commands);
  const double over = (times.first - times.second) / count * 1e6;
  results.push_back(
      {"launch with three accesses and a wait: time beyond a bare command", over, "us", "<= 15", over <= 15});
  results.push_back({"  the bare command", times.second / count * 1e6, "us", "", true});

  const double queued = hpe::bench::median_seconds(
      repeats, [] { hpe::synchronize(); },
      [&] {
        for (int i = 0; i < count; ++i)
          hpe::launch(test_kernel().nothing, hpe::grid(1), none, hpe::in(a), hpe::in(b), hpe::out(c));
        hpe::synchronize();
      });
  results.push_back({"  each of many launches, queued one after the other", queued / count * 1e6, "us", "", true});
}

void look_ups(unsigned repeats, std::vector<result>& results) {
  constexpr std::size_t granules = 4096;
  const hpe::memory::uvas space(0, std::size_t{16} << 30, 1);
  hpe::memory::granule_table directory(space.layout());
  hpe::coherence::region_table regions;
  std::byte* base = space.segment_begin(hpe::memory::segment_kind::device, 0);
  for (std::size_t g = 0; g < granules; ++g) directory.assign(base + g * hpe::granule_size, 1, {regions.take().id, 0});

  std::vector<const std::byte*> addresses(1 << 16);
  std::mt19937_64 random(std::random_device{}());
  for (auto& p : addresses) p = base + random() % (granules * hpe::granule_size);
  const double seconds = hpe::bench::median_seconds(
      repeats, [] {},
      [&] {
        std::uint64_t numbers = 0;
        for (int round = 0; round < 16; ++round)
          for (const std::byte* p : addresses) numbers += regions.at(directory.find(p).region).id;
        sink = numbers;
      });
  const double each = seconds / (16.0 * static_cast<double>(addresses.size())) * 1e9;
  results.push_back({"address -> region, random over 8 GiB", each, "ns", "<= 10", each <= 10});
}

// Calls body() below `calls` nested calls, so that a call stack of this depth can be timed. A profile records a call
// stack for every copy and every touch.
[[gnu::noinline]] void at_depth(int calls, const std::function<void()>& body) {
  if (calls == 0) return body();
  at_depth(calls - 1, body);
  sink = sink + 1;  // prevents a tail call, so that each call has a stack frame
}

void stacks(unsigned repeats, std::vector<result>& results) {
  constexpr int count = 2000;
  hpe::trace::call_stack::prepare();
  hpe::trace::call_stack stack;
  int frames = 0;
  hpe::bench::pair_of_medians times{};
  at_depth(10, [&] {
    const auto nothing = [] {};
    const auto by_libunwind = [&] {
      for (int i = 0; i < count; ++i) stack = hpe::trace::call_stack::here();
    };
    const auto by_libgcc = [&] {
      for (int i = 0; i < count; ++i) frames = ::backtrace(stack.frames.data(), hpe::trace::call_stack::depth);
    };
    times = hpe::bench::paired_medians(repeats, nothing, by_libunwind, nothing, by_libgcc);
  });
  results.push_back({fmt::format("a stack of {} frames: time / time of glibc's backtrace", frames),
                     times.first / times.second, "x", "<= 0.2", times.first <= 0.2 * times.second});
  results.push_back({"  a stack by libunwind", times.first / count * 1e9, "ns", "", true});
  results.push_back({"  by glibc's backtrace", times.second / count * 1e9, "ns", "", true});
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      hpe::bench::parse(argc, argv,
                        "coherent streams, new memory, launches, look-ups and stacks against memcpy, "
                        "making pages, bare device commands and glibc, on this machine");
  std::vector<result> results;
  look_ups(arguments.repeats, results);
  stacks(arguments.repeats, results);
  launches(arguments.repeats, results);
  streams(arguments.repeats, results);
  new_pages(arguments.repeats, results);
  return hpe::bench::report("coherence", results, arguments);
}
