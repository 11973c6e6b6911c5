// The wave step on the cores of this machine, without a runtime. The reference is memcpy between arrays as large as the
// wave field, of which each thread copies its own share. The threads divide the grid as the threads of a soft device
// do, into ranges of the launch's tiles.

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/waves/rtm_step.h"
#include "hpe/kernel.h"
#include "kernels/host/declared_variants.h"
#include "kernels/wave_parameters.h"

namespace {

using namespace hpe::kernels;

/// Returns zeroed memory, on huge pages if the machine has them.
float* allocate(std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return static_cast<float*>(memory);
}

/// Calls work(i) in threads i = 0, 1, ... `threads` - 1 at the same time, and waits for all threads.
void together(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::jthread> team;
  for (unsigned i = 0; i < threads; ++i) team.emplace_back([&work, i] { work(i); });
}

}  // namespace

int hpe::bench::measure_host_step(const arguments& options) {
  constexpr std::int64_t cells = 512;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());

  const field_layout layout = make_layout(cells, cells, cells, y_ends::closed, false);
  const auto count = static_cast<std::size_t>(layout.size());
  float *a = allocate(count), *b = allocate(count), *speed = allocate(count);
  for (std::int64_t x = 0; x < cells; ++x)
    for (std::int64_t y = 0; y < cells; ++y) std::fill_n(speed + layout.index(x, y, 0), cells, 0.1f);
  const std::vector<float> taper(static_cast<std::size_t>(cells + row_multiple), 1.0f);
  const point middle{static_cast<std::int32_t>(cells / 2), static_cast<std::int32_t>(cells / 2),
                     static_cast<std::int32_t>(cells / 2)};
  a[layout.index(middle.x, middle.y, middle.z)] = 1.0f;

  wave_step<float> p{};
  p.speed = speed;
  p.taper_x = p.taper_y = p.taper_z = taper.data();
  p.layout = layout;
  p.across = whole_section(layout);
  p.part = make_slab(layout, p.across, 0, cells, sizeof(float));
  p.ends = y_ends::closed;
  p.set_weights(1, 1, 1);
  hpeTiles grid{0, 0, {p.part.tiles_x(), p.part.tiles_y(p.across), 1}};
  const std::uint64_t tiles = std::uint64_t{grid.grid[0]} * grid.grid[1];

  const std::function<void(unsigned)> copy = [&](unsigned thread) {
    const std::size_t share = count / threads;
    std::memcpy(b + share * thread, a + share * thread, share * sizeof(float));
  };

  struct candidate {
    const char* name;
    hpeHostKernel kernel;
    bool usable;
    double bar;
  };
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const candidate candidates[] = {{"chosen for this machine", wave_step_8_f32, true, 0.5},
                                  {"baseline x86-64", wave_step_8_f32_baseline, true, 0},
                                  {"AVX2 and FMA", wave_step_8_f32_avx2, avx2, 0},
                                  {"AVX-512", wave_step_8_f32_avx512, avx512, 0}};
  std::vector<hpe::bench::result> results;
  for (const candidate& c : candidates) {
    if (!c.usable) continue;
    const std::function<void(unsigned)> step = [&](unsigned thread) {
      hpeTiles range = grid;
      range.begin = tiles * thread / threads;
      range.end = tiles * (thread + 1) / threads;
      c.kernel(&p, &range);
    };
    const auto turn = [&] {
      std::swap(a, b);
      p.now = a;
      p.next = b;
    };
    const auto [copying, stepping] = hpe::bench::paired_medians(
        options.repeats, [] {}, [&] { together(threads, copy); }, turn, [&] { together(threads, step); });
    const double copied = 2.0 * static_cast<double>(count) * sizeof(float) / copying;
    const double stepped = 16.0 * static_cast<double>(cells * cells * cells) / stepping;
    const std::string name = c.name;
    if (c.bar > 0) results.push_back({"memcpy, read and written", copied * 1e-9, "GB/s", "", true});
    results.push_back({name + ", 16 bytes a point", stepped * 1e-9, "GB/s", "", true});
    results.push_back(
        {name + ", of the copy rate", stepped / copied, "", c.bar > 0 ? ">= 0.5" : "", stepped >= c.bar * copied});
  }
  return hpe::bench::report(
      "wave step, " + std::to_string(cells) + "^3 points, " + std::to_string(threads) + " threads", results, options);
}
