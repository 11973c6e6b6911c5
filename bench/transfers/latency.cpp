// The times of single page faults and single launches.
#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "bench/transfers/parts.h"
#include "tests/core/kernels.h"

namespace hpe::bench {

namespace {

volatile std::uint64_t sink;

void touch_each(const std::byte* data, const std::vector<std::size_t>& offsets) {
  std::uint64_t sum = 0;
  for (const std::size_t at : offsets) sum += static_cast<std::uint64_t>(data[at]);
  sink = sum;
}

}  // namespace

void faults(table& t, const raw_gpu& gpu) {
  const hpe::array<std::uint32_t> a(64 * mebi / sizeof(std::uint32_t));
  const std::size_t block = hpe::pointer_info(a.data()).block;
  const auto* const data = reinterpret_cast<const std::byte*>(a.data());
  touch_pages(data, 64 * mebi);
  const pinned_buffer pinned(block);
  // Touches every fifth block, in an order that no prefetch recognises.
  std::vector<std::size_t> offsets;
  for (std::size_t b = 0; b < 64 * mebi / block; b += 5) offsets.push_back(b * block + 8);
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937(fresh_seed()));
  const auto times = paired_timings(
      t.repeats, [&] { launch_fill(a); }, [&] { touch_each(data, offsets); }, [] {},
      [&] {
        for (std::size_t i = 0; i < offsets.size(); ++i) {
          gpu.down(pinned.data(), gpu.memory, block);
          gpu.finish();
        }
      });
  const double raw = times.second.median / static_cast<double>(offsets.size());
  t.time(fmt::format("synchronous driver copy of a block of {} KiB", block / 1024), times.second, offsets.size());
  t.time("page fault on such a block, until its first byte can be read", times.first, offsets.size(),
         1.3 * raw + 10e-6);
  faults_in_parts(t, gpu, block);
}

void random_touches(table& t, const raw_gpu& gpu) {
  constexpr std::size_t touches = 2000;
  const hpe::array<std::uint32_t> a(stream_bytes / sizeof(std::uint32_t));
  const auto* const data = reinterpret_cast<const std::byte*>(a.data());
  CUdeviceptr managed = 0;
  CALL(cuMemAllocManaged, &managed, stream_bytes, CU_MEM_ATTACH_GLOBAL);
  auto* const same = reinterpret_cast<std::byte*>(managed);  // NOLINT(performance-no-int-to-ptr)
  touch_pages(data, stream_bytes);
  std::vector<std::size_t> offsets(touches);
  std::mt19937 random(fresh_seed());
  for (std::size_t& at : offsets) at = random() % (stream_bytes / page) * page;
  std::uint64_t moved = 0;
  const auto times = paired_timings(
      t.repeats, [&] { launch_fill(a); },
      [&] {
        const std::uint64_t before = hpe::statistics().bytes_to_host;
        touch_each(data, offsets);
        moved = hpe::statistics().bytes_to_host - before;
      },
      [&] {
        gpu.fill(same, stream_bytes);
        gpu.finish();
      },
      [&] { touch_each(same, offsets); });
  t.time(fmt::format("one of {} touches of random pages of 1 GiB", touches), times.first, touches);
  t.time("the same in managed memory", times.second, touches);
  t.ratio("  faster than managed memory", times.first, times.second, 1);
  t.number("  bytes moved by hpe, per byte of the touched pages",
           static_cast<double>(moved) / static_cast<double>(touches * page), "x");
  CALL(cuMemFree, managed);
}

void launches(table& t, const raw_gpu& gpu) {
  constexpr int count = 500;  // so few that the driver queues all of them without waiting
  const hpe::array<std::uint32_t> a(mebi);
  const hpe::array<std::uint32_t> b(mebi);
  const hpe::array<std::uint32_t> c(mebi);
  const auto times = paired_timings(
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
  const double raw = times.second.median;
  const timing more{times.first.median - raw, times.first.fastest - raw, times.first.slowest - raw};
  t.time("cuLaunchKernel, queued", times.second, count);
  t.time("launch with three accesses, additional time", more, count, 2e-6);
}

}  // namespace hpe::bench
