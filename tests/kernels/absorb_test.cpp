// The kernel of perfectly matched layers: the results of every variant are close to a reference, and have the same bits
// for any division into slabs and on all devices.

#include "kernels/absorb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "hpe/hpe.hpp"
#include "hpe/kernel.h"
#include "kernels/host/declared_variants.h"
#include "tests/kernels/problem.h"

namespace hpe::kernels {
namespace {

/// Layers of different widths at all ends of a grid, with random rates and memories.
template <class T>
struct layers {
  problem<T> wave;
  layer_ends ends[3];
  std::vector<T> rates, memory;  ///< arrays for the whole grid

  layers(int64_t nx, int64_t ny, int64_t nz, y_ends how, bool surface, int64_t radius)
      : wave(nx, ny, nz, how, surface, radius),
        ends{{nx, 3, 4}, {ny, how == y_ends::closed ? 5 : 0, how == y_ends::closed ? 2 : 0}, {nz, surface ? 0 : 6, 7}} {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> any(-1, 1);
    rates.resize(static_cast<std::size_t>(layer_rates * (ends[0].width() + ends[1].width() + ends[2].width())));
    for (T& r : rates) r = static_cast<T>(any(random));
    memory.resize(static_cast<std::size_t>(parameters(0, nx).memory_size()));
    for (T& m : memory) m = static_cast<T>(any(random));
  }

  [[nodiscard]] absorb<T> parameters(int64_t x0, int64_t x1) const {
    absorb<T> p{};
    p.now = wave.now.data();
    p.speed = wave.speed.data();
    p.rates = rates.data();
    p.layout = wave.layout;
    p.x0 = x0;
    p.x1 = x1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      p.ends[axis] = ends[axis];
      p.set_weights(static_cast<int>(axis), 1 + 0.1 * static_cast<double>(axis));
    }
    return p;
  }

  /// Copies the memory variables of a slab's cells from the array of the whole grid, or back to it.
  void move_memory(absorb<T>& p, std::vector<T>& part, std::vector<T>& all, bool back) const {
    absorb<T> whole = parameters(0, wave.layout.nx);
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t x = p.x0; x < p.x1; ++x)
        for (int64_t y = 0; y < wave.layout.ny; ++y)
          for (int64_t z = 0; z < wave.layout.nz; ++z) {
            if (p.ends[axis].number(axis == 0 ? x : axis == 1 ? y : z) < 0) continue;
            for (int64_t m = 0; m < layer_memories; ++m) {
              T& here = part[static_cast<std::size_t>(p.place(axis, x, y, z) + m * p.cells(axis))];
              T& there = all[static_cast<std::size_t>(whole.place(axis, x, y, z) + m * whole.cells(axis))];
              (back ? there : here) = back ? here : there;
            }
          }
  }
};

template <class T>
struct outcome {
  std::vector<T> next, memory;
};

template <class T>
outcome<T> run(const layers<T>& g, hpeHostKernel kernel, const std::vector<int64_t>& cuts) {
  outcome<T> o{g.wave.next, g.memory};
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    absorb<T> p = g.parameters(begin, end);
    std::vector<T> memory(static_cast<std::size_t>(p.memory_size()));
    g.move_memory(p, memory, o.memory, false);
    p.next = o.next.data();
    p.memory = memory.data();
    const auto tiles = static_cast<uint64_t>(end - begin);
    for (uint64_t t = 0; t < tiles; ++t) {
      const hpeTiles one{t, t + 1, {absorb_shape(p, false).grid[0], 1, 1}};
      kernel(&p, &one);
    }
    g.move_memory(p, memory, o.memory, true);
    begin = end;
  }
  return o;
}

/// Returns the reference in long double, by the formula of kernels/absorb.h.
template <class T>
std::vector<long double> reference(const layers<T>& g) {
  const field_layout& l = g.wave.layout;
  const absorb<T> p = g.parameters(0, l.nx);
  std::vector<long double> next(g.wave.next.begin(), g.wave.next.end());
  for (int64_t x = 0; x < l.nx; ++x)
    for (int64_t y = 0; y < l.ny; ++y)
      for (int64_t z = 0; z < l.nz; ++z)
        for (int axis = 0; axis < 3; ++axis) {
          const int64_t i = axis == 0 ? x : axis == 1 ? y : z, n = p.ends[axis].number(i);
          if (n < 0) continue;
          const auto cell = static_cast<std::size_t>(l.index(x, y, z));
          long double slope = 0, curvature = p.curvatures[axis][0] * static_cast<long double>(g.wave.now[cell]);
          for (int64_t k = 1; k <= l.radius; ++k) {
            const long double before = g.wave.now[cell - static_cast<std::size_t>(k * p.stride(axis))];
            const long double after = g.wave.now[cell + static_cast<std::size_t>(k * p.stride(axis))];
            slope += p.slopes[axis][k - 1] * (after - before);
            curvature += p.curvatures[axis][k] * (after + before);
          }
          const auto rate = [&](int64_t which) -> long double {
            return p.rates_of(axis, n)[which * p.ends[axis].width()];
          };
          const auto memory = [&](int64_t which) -> long double {
            return g.memory[static_cast<std::size_t>(p.place(axis, x, y, z) + which * p.cells(axis))];
          };
          const long double inner = rate(0) * memory(2) + rate(6) * slope;
          const long double middle = rate(0) * memory(1) + rate(4) * curvature + rate(5) * slope + rate(1) * inner;
          const long double outer = rate(0) * memory(0) + rate(2) * curvature + rate(3) * slope + rate(1) * middle;
          next[cell] -= g.wave.speed[cell] * outer;
        }
  return next;
}

std::vector<layers<float>> all_layers() {
  return {{19, 17, 29, y_ends::closed, false, 4},
          {16, 11, 80, y_ends::closed, true, 2},
          {23, 1, 37, y_ends::flat, false, 8}};
}

TEST(Absorb, EveryVariantIsNearTheReferenceForAnySlabs) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  std::vector<hpeHostKernel> variants{absorb_f32_baseline};
  if (avx2) variants.push_back(absorb_f32_avx2);
  if (avx512) variants.push_back(absorb_f32_avx512);
  for (const layers<float>& g : all_layers()) {
    const std::vector<long double> wanted = reference(g);
    const int64_t nx = g.wave.layout.nx;
    for (const hpeHostKernel kernel : variants) {
      const outcome<float> whole = run(g, kernel, {nx});
      double worst = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i)
        worst = std::max(worst, static_cast<double>(std::abs(wanted[i] - static_cast<long double>(whole.next[i]))));
      EXPECT_LT(worst, 1e-5);
      for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{2, nx}, {3, 8, nx - 2, nx}, {nx - 4, nx - 3, nx}}) {
        const outcome<float> divided = run(g, kernel, cuts);
        EXPECT_TRUE(same_bits(whole.next, divided.next));
        EXPECT_TRUE(same_bits(whole.memory, divided.memory));
      }
    }
  }
}

TEST(OnDevices, LayersHaveTheBitsOfTheHost) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this host rounds a * b + c twice";
  const hpeDeviceInfo it = device_info(0);
  const kernel<absorb<float>> on_device{module(), "absorb_f32"};
  const auto array_of = [](const std::vector<float>& values) {
    array<float> a(values.size());
    std::copy(values.begin(), values.end(), a.begin());
    return a;
  };
  for (const layers<float>& g : all_layers()) {
    const int64_t nx = g.wave.layout.nx;
    const outcome<float> wanted = run(g, absorb_f32, {nx});
    const array<float> now = array_of(g.wave.now), next = array_of(g.wave.next), speed = array_of(g.wave.speed);
    const array<float> rates = array_of(g.rates);
    std::vector<float> all = g.memory;
    int64_t begin = 0;
    for (const int64_t end : {int64_t{2}, int64_t{9}, nx}) {
      absorb<float> p = g.parameters(begin, end);
      std::vector<float> part(static_cast<std::size_t>(p.memory_size()));
      g.move_memory(p, part, all, false);
      const array<float> memory = array_of(part);
      p.next = next.data();
      p.now = now.data();
      p.speed = speed.data();
      p.rates = rates.data();
      p.memory = memory.data();
      launch_on(0, on_device, absorb_shape(p, it.kind == HPE_DEVICE_CUDA), p, inout(next), in(now), in(speed),
                in(rates), inout(memory));
      std::copy(memory.begin(), memory.end(), part.begin());
      g.move_memory(p, part, all, true);
      begin = end;
    }
    EXPECT_TRUE(same_bits(wanted.next, {next.begin(), next.end()}));
    EXPECT_TRUE(same_bits(wanted.memory, all));
  }
}

}  // namespace
}  // namespace hpe::kernels
