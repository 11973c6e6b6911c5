// How fast the wave-step kernel is on this machine, beside the machine's own copy rate, in one run.
//
//   rtm_kernel [cells per axis] [threads] [steps]
//
// What is counted. A point of the step costs 16 bytes: it reads now, next and speed and writes next, four bytes each;
// that neighbours come from caches is the kernel's business. The copy is memcpy of arrays as large as the wave field,
// by the same threads, each its own part, and counts a byte read and a byte written. The ratio printed is (16 bytes x
// points / time of a step) / (2 x bytes copied / time of a copy), each the best of the repeats; steps and copies take
// turns, so that a change of the machine's speed meets both. Threads split the grid as a soft device does: ranges of
// the launch's tiles. No runtime takes part.

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "hpe/kernel.h"
#include "kernels/wave.h"

extern "C" {
#define HPE_KERNEL(name, ...)                                          \
  void name(const void* parameters, const hpeTiles* tiles);            \
  void name##_baseline(const void* parameters, const hpeTiles* tiles); \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);     \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);
#include "kernels/host/kernels.def"
}

namespace {

using namespace hpe::kernels;
using seconds = std::chrono::duration<double>;

/// Zeroed memory on huge pages where the machine gives them.
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

/// Seconds that `work(thread)` takes on all threads together.
double timed(unsigned threads, const std::function<void(unsigned)>& work) {
  std::barrier start(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::jthread> team;
  for (unsigned i = 0; i < threads; ++i)
    team.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  const auto begin = std::chrono::steady_clock::now();
  start.arrive_and_wait();
  team.clear();
  return seconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t cells = argc > 1 ? std::atoll(argv[1]) : 400;
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : std::thread::hardware_concurrency();
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 8;
  if (cells < 16 || threads < 1 || repeats < 1) {
    std::fprintf(stderr, "usage: rtm_kernel [cells per axis >= 16] [threads >= 1] [steps >= 1]\n");
    return 2;
  }

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
  p.part = make_slab(layout, 0, cells, sizeof(float));
  p.centre = static_cast<float>(3 * stencil_weights[0]);
  for (auto& axis : p.weights)
    for (std::int64_t k = 0; k < stencil_radius; ++k) axis[k] = static_cast<float>(stencil_weights[k + 1]);
  p.ends = y_ends::closed;
  hpeTiles grid{0, 0, {p.part.tiles_x(), p.part.tiles_y(layout.ny), 1}};
  const std::uint64_t tiles = std::uint64_t{grid.grid[0]} * grid.grid[1];

  const auto copy = [&](unsigned thread) {
    const std::size_t share = count / threads;
    std::memcpy(b + share * thread, a + share * thread, share * sizeof(float));
  };
  const auto step_with = [&](hpeHostKernel kernel) {
    return [&p, &grid, tiles, threads, kernel](unsigned thread) {
      hpeTiles range = grid;
      range.begin = tiles * thread / threads;
      range.end = tiles * (thread + 1) / threads;
      kernel(&p, &range);
    };
  };

  struct row {
    const char* name;
    hpeHostKernel kernel;
    bool usable;
    double best;
  };
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  row rows[] = {{"chosen", wave_step_f32, true, 1e9},
                {"baseline", wave_step_f32_baseline, true, 1e9},
                {"avx2", wave_step_f32_avx2, avx2, 1e9},
                {"avx512", wave_step_f32_avx512, avx512, 1e9}};
  double best_copy = 1e9;
  for (int i = 0; i < repeats; ++i) {
    best_copy = std::min(best_copy, timed(threads, copy));
    for (row& r : rows)
      if (r.usable) {
        std::swap(a, b);
        p.now = a;
        p.next = b;
        r.best = std::min(r.best, timed(threads, step_with(r.kernel)));
      }
  }

  const double copied = 2.0 * static_cast<double>(count) * sizeof(float) / best_copy;
  const double points = static_cast<double>(cells) * static_cast<double>(cells) * static_cast<double>(cells);
  std::printf("%lld^3 cells, %u threads, tiles of %lld planes x %lld rows\n", static_cast<long long>(cells), threads,
              static_cast<long long>(p.part.tile_x), static_cast<long long>(p.part.tile_y));
  std::printf("%-10s %8.2f GB/s read and written\n", "memcpy", copied * 1e-9);
  for (const row& r : rows)
    if (r.usable)
      std::printf("%-10s %8.2f GB/s at 16 bytes a point, %6.3f Gpoint/s, %.2f of copy\n", r.name,
                  16 * points / r.best * 1e-9, points / r.best * 1e-9, 16 * points / r.best / copied);
}
