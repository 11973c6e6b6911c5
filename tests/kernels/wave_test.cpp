// Tests the kernels without a runtime: compares every variant with a plain reference, and different divisions of a grid
// with each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "hpe/kernel.h"
#include "kernels/host/declared_variants.h"
#include "kernels/wave_parameters.h"
#include "tests/kernels/problem.h"

namespace hpe::kernels {
namespace {

struct variant {
  const char* name;
  bool usable;
  hpeHostKernel step_f32, step_f64, keep_f32, correlate_f32, keep_compressed_f32, correlate_compressed_f32;
};

std::vector<variant> variants() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  std::vector<variant> all = {{"chosen", true, wave_step_8_f32, wave_step_8_f64, keep_f32, correlate_f32,
                               keep_compressed_f32, correlate_compressed_f32},
                              {"baseline", true, wave_step_8_f32_baseline, wave_step_8_f64_baseline, keep_f32_baseline,
                               correlate_f32_baseline, keep_compressed_f32_baseline, correlate_compressed_f32_baseline},
                              {"avx2", avx2, wave_step_8_f32_avx2, wave_step_8_f64_avx2, keep_f32_avx2,
                               correlate_f32_avx2, keep_compressed_f32_avx2, correlate_compressed_f32_avx2},
                              {"avx512", avx512, wave_step_8_f32_avx512, wave_step_8_f64_avx512, keep_f32_avx512,
                               correlate_f32_avx512, keep_compressed_f32_avx512, correlate_compressed_f32_avx512}};
  std::erase_if(all, [](const variant& v) { return !v.usable; });
  return all;
}

/// The field after the step, and the value recorded at each receiver point.
template <class T>
struct result {
  std::vector<T> next, record;
};

/// Runs the step in slabs that end at `cuts`. Each slab is divided into tiles of the given size, and each call of the
/// kernel processes `range` tiles.
template <class T>
result<T> run(const problem<T>& given, hpeHostKernel kernel, const std::vector<int64_t>& cuts, int64_t tile_x,
              int64_t tile_y, uint64_t range) {
  result<T> r{given.next, std::vector<T>(given.recorded.size(), T(-77))};
  int64_t begin = 0;
  for (const int64_t end : cuts) {
    std::vector<point> injected, recorded;
    std::vector<T> amplitude;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < given.injected.size(); ++i)
      if (given.injected[i].x >= begin && given.injected[i].x < end) {
        injected.push_back(given.injected[i]);
        amplitude.push_back(given.amplitude[i]);
      }
    for (std::size_t i = 0; i < given.recorded.size(); ++i)
      if (given.recorded[i].x >= begin && given.recorded[i].x < end) {
        recorded.push_back(given.recorded[i]);
        numbers.push_back(i);
      }
    std::vector<T> record(recorded.size());
    wave_step<T> p = given.parameters();
    p.next = r.next.data();
    p.part = {begin, end, tile_x, tile_y};
    p.injected = injected.data();
    p.amplitude = amplitude.data();
    p.injected_count = static_cast<int64_t>(injected.size());
    p.recorded = recorded.data();
    p.record = record.data();
    p.recorded_count = static_cast<int64_t>(recorded.size());
    hpeTiles tiles{0, 0, {p.part.tiles_x(), p.part.tiles_y(p.across), 1}};
    const uint64_t all = uint64_t{tiles.grid[0]} * tiles.grid[1];
    for (uint64_t t = 0; t < all; t += range) {
      tiles.begin = t;
      tiles.end = std::min(t + range, all);
      kernel(&p, &tiles);
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) r.record[numbers[i]] = record[i];
    begin = end;
  }
  return r;
}

/// Returns the field after the step in long double, by the formula of kernels/wave_parameters.h.
template <class T>
std::vector<long double> reference(const problem<T>& g) {
  const field_layout& l = g.layout;
  std::vector<long double> next(g.next.begin(), g.next.end());
  const auto at = [&](int64_t x, int64_t y, int64_t z) -> long double {
    if (g.ends == y_ends::periodic) y = (y % l.ny + l.ny) % l.ny;
    if (x < 0 || x >= l.nx || y < 0 || y >= l.ny || z < 0 || z >= l.nz) return 0;
    return g.now[static_cast<std::size_t>(l.index(x, y, z))];
  };
  for (int64_t x = 0; x < l.nx; ++x)
    for (int64_t y = 0; y < l.ny; ++y)
      for (int64_t z = 0; z < l.nz; ++z) {
        const auto i = static_cast<std::size_t>(l.index(x, y, z));
        const double along_y = g.ends == y_ends::flat ? 0 : 0.81;
        long double laplacian = (2.3 + along_y) * stencil_weight(l.radius, 0) * at(x, y, z);
        for (int64_t k = 1; k <= l.radius; ++k) {
          laplacian += stencil_weight(l.radius, k) *
                       (at(x - k, y, z) + at(x + k, y, z) + 1.3 * (at(x, y, z - k) + at(x, y, z + k)));
          if (along_y > 0) laplacian += along_y * stencil_weight(l.radius, k) * (at(x, y - k, z) + at(x, y + k, z));
        }
        if (!g.potential.empty()) laplacian -= g.potential[i] * at(x, y, z);
        const long double taper = static_cast<long double>(g.taper_x[static_cast<std::size_t>(x)]) *
                                  g.taper_y[static_cast<std::size_t>(y)] * g.taper_z[static_cast<std::size_t>(z)];
        next[i] = at(x, y, z) + (2 * taper - 1) * (at(x, y, z) - next[i]) + g.speed[i] * laplacian;
      }
  for (std::size_t n = 0; n < g.injected.size(); ++n) {
    const auto i = static_cast<std::size_t>(l.index(g.injected[n].x, g.injected[n].y, g.injected[n].z));
    next[i] += static_cast<long double>(g.speed[i]) * g.amplitude[n];
  }
  if (g.free_surface)
    for (int64_t x = 0; x < l.nx; ++x)
      for (int64_t y = 0; y < l.ny; ++y) {
        next[static_cast<std::size_t>(l.index(x, y, 0))] = 0;
        for (int64_t k = 1; k <= l.radius; ++k)
          next[static_cast<std::size_t>(l.index(x, y, -k))] = -next[static_cast<std::size_t>(l.index(x, y, k))];
      }
  return next;
}

template <class T>
hpeHostKernel step_of(const variant& v) {
  return std::is_same_v<T, float> ? v.step_f32 : v.step_f64;
}

template <class T>
double largest_difference(const std::vector<long double>& a, const std::vector<T>& b) {
  long double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - static_cast<long double>(b[i])));
  return static_cast<double>(worst);
}

template <class T>
void expect_near_reference(double tolerance) {
  for (const problem<T>& g : problems<T>()) {
    const std::vector<long double> wanted = reference(g);
    for (const variant& v : variants()) {
      const result<T> got = run(g, step_of<T>(v), {g.layout.nx}, 64, 64, 1000);
      EXPECT_LT(largest_difference(wanted, got.next), tolerance) << v.name << ", nz = " << g.layout.nz;
      for (std::size_t i = 0; i < g.recorded.size(); ++i)
        EXPECT_EQ(got.record[i],
                  g.now[static_cast<std::size_t>(g.layout.index(g.recorded[i].x, g.recorded[i].y, g.recorded[i].z))]);
    }
  }
}

TEST(WaveStep, EveryVariantIsNearTheReference) {
  expect_near_reference<float>(3e-6);
  expect_near_reference<double>(5e-15);
}

TEST(WaveStep, EveryOrderIsNearTheReference) {
  struct {
    int64_t order;
    hpeHostKernel in_float, in_double;
  } const orders[] = {{2, wave_step_2_f32, nullptr},   {4, wave_step_4_f32, wave_step_4_f64},
                      {6, wave_step_6_f32, nullptr},   {8, wave_step_8_f32, wave_step_8_f64},
                      {10, wave_step_10_f32, nullptr}, {12, wave_step_12_f32, wave_step_12_f64},
                      {14, wave_step_14_f32, nullptr}, {16, wave_step_16_f32, wave_step_16_f64}};
  for (const auto& [order, in_float, in_double] : orders) {
    for (const problem<float>& g : problems<float>(order / 2))
      EXPECT_LT(largest_difference(reference(g), run(g, in_float, {g.layout.nx}, 5, 4, 3).next), 4e-6) << order;
    if (in_double == nullptr) continue;
    for (const problem<double>& g : problems<double>(order / 2))
      EXPECT_LT(largest_difference(reference(g), run(g, in_double, {g.layout.nx}, 5, 4, 3).next), 7e-15) << order;
  }
}

template <class T>
void expect_same_bits_however_divided() {
  std::mt19937 random(3);
  for (const problem<T>& g : problems<T>())
    for (const variant& v : variants()) {
      const int64_t nx = g.layout.nx;
      const result<T> whole = run(g, step_of<T>(v), {nx}, nx, g.layout.ny, 1000);
      for (int trial = 0; trial < 25; ++trial) {
        std::vector<int64_t> cuts{nx};
        for (unsigned n = random() % 5; n > 0 && nx > 1; --n)
          cuts.push_back(1 + static_cast<int64_t>(random() % static_cast<unsigned>(nx - 1)));
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        const result<T> divided = run(g, step_of<T>(v), cuts, 1 + random() % 7, 1 + random() % 9, 1 + random() % 4);
        ASSERT_TRUE(same_bits(whole.next, divided.next)) << v.name;
        ASSERT_TRUE(same_bits(whole.record, divided.record)) << v.name;
      }
    }
}

TEST(WaveStep, AnyDivisionGivesTheSameBits) {
  expect_same_bits_however_divided<float>();
  expect_same_bits_however_divided<double>();
}

TEST(WaveStep, GapsAndRimsStayZero) {
  for (const problem<float>& g : problems<float>()) {
    if (g.free_surface) continue;
    std::vector<bool> cell(g.next.size());
    for (int64_t x = 0; x < g.layout.nx; ++x)
      for (int64_t y = 0; y < g.layout.ny; ++y)
        for (int64_t z = 0; z < g.layout.nz; ++z) cell[static_cast<std::size_t>(g.layout.index(x, y, z))] = true;
    for (const variant& v : variants()) {
      const result<float> r = run(g, v.step_f32, {g.layout.nx}, 8, 8, 1000);
      for (std::size_t i = 0; i < r.next.size(); ++i)
        ASSERT_TRUE(cell[i] || r.next[i] == 0.0f) << v.name << " at " << i;
    }
  }
}

TEST(WaveStep, VariantsThatFuseAgreeInEveryBit) {
  const std::vector<variant> all = variants();
  if (all.size() < 4) GTEST_SKIP() << "this machine has no AVX-512, so there is only one variant with fused operations";
  for (const problem<float>& g : problems<float>())
    EXPECT_TRUE(same_bits(run(g, all[2].step_f32, {g.layout.nx}, 8, 8, 9).next,
                          run(g, all[3].step_f32, {g.layout.nx}, 8, 8, 9).next));
}

TEST(Slab, TilesCoverItAndFitACache) {
  for (const int64_t n : {1, 7, 100, 401, 1000}) {
    const field_layout l = make_layout(n, n, n, y_ends::closed, false);
    const slab s = make_slab(l, whole_section(l), 0, n, 4);
    EXPECT_GE(s.tile_x * s.tiles_x(), n);
    EXPECT_GE(s.tile_y * s.tiles_y(whole_section(l)), n);
    EXPECT_LT(s.tile_x * (s.tiles_x() - 1), n);
    EXPECT_LT(s.tile_y * (s.tiles_y(whole_section(l)) - 1), n);
  }
}

TEST(KeepAndCorrelate, MatchTheirDefinition) {
  const problem<float> g(20, 9, 30, y_ends::closed, false);
  const window w{3, 2, 5, 13, 6, 17};
  const auto cells = static_cast<std::size_t>(w.nx * w.ny * w.nz);
  for (const variant& v : variants())
    for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{20}, {2, 7, 8, 20}}) {
      std::vector<float> kept(cells, -1), image(cells, 1), illumination(cells, 2);
      int64_t begin = 0;
      for (const int64_t end : cuts) {
        const slab part{begin, end, 3, 4};
        const hpeTiles tiles{0, part.tiles_x(), {part.tiles_x(), 1, 1}};
        const keep<float> k{kept.data(), g.now.data(), g.layout, part, w};
        v.keep_f32(&k, &tiles);
        const correlate<float> c{image.data(), illumination.data(), kept.data(), g.next.data(), g.layout, part, w};
        v.correlate_f32(&c, &tiles);
        begin = end;
      }
      std::size_t i = 0;
      for (int64_t x = 0; x < w.nx; ++x)
        for (int64_t y = 0; y < w.ny; ++y)
          for (int64_t z = 0; z < w.nz; ++z, ++i) {
            const auto cell = static_cast<std::size_t>(g.layout.index(w.x + x, w.y + y, w.z + z));
            ASSERT_EQ(kept[i], g.now[cell]) << v.name;
            ASSERT_NEAR(image[i], 1 + g.now[cell] * g.next[cell], 3e-7) << v.name;
            ASSERT_NEAR(illumination[i], 2 + g.now[cell] * g.now[cell], 3e-7) << v.name;
          }
    }
}

/// Returns the largest change of each cell that compression may make: half a quantisation step of the cell's block.
std::vector<float> bounds(const problem<float>& g, const window& w, int64_t bits) {
  std::vector<float> all;
  for (int64_t x = 0; x < w.nx; ++x)
    for (int64_t y = 0; y < w.ny; ++y)
      for (int64_t first = 0; first < w.nz; first += block_cells) {
        const float* const from = &g.now[static_cast<std::size_t>(g.layout.index(w.x + x, w.y + y, w.z + first))];
        const auto count = static_cast<std::size_t>(std::min(block_cells, w.nz - first));
        const auto [lowest, largest] = std::minmax_element(from, from + count);
        const auto levels = static_cast<float>((1 << bits) - (*lowest < 0 && *largest > 0 ? 2 : 1));
        all.insert(all.end(), count, 0.5F * (*largest - *lowest) / levels);
      }
  return all;
}

TEST(KeepAndCorrelate, CompressedCellsAreOffByHalfAStepAtMost) {
  // Each row has four blocks; the last block is not full.
  const problem<float> g(14, 5, 110, y_ends::closed, false);
  const window w{3, 1, 5, 8, 3, 101};
  const auto cells = static_cast<std::size_t>(w.nx * w.ny * w.nz);
  for (const int64_t bits : {4, 8, 16}) {
    const auto bytes = static_cast<std::size_t>(w.nx * w.ny * compressed_row<float>(w.nz, bits));
    EXPECT_EQ(bytes, static_cast<std::size_t>(w.nx * w.ny * 4 * (8 + 4 * bits)));
    const std::vector<float> bound = bounds(g, w, bits);
    std::vector<uint8_t> first;
    for (const variant& v : variants())
      for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{14}, {2, 7, 8, 14}}) {
        std::vector<uint8_t> kept(bytes, 255);
        // The kept field is correlated with a field of ones, so the image equals the kept field.
        std::vector<float> image(cells, 0), illumination(cells, 0), ones(g.now.size(), 1);
        int64_t begin = 0;
        for (const int64_t end : cuts) {
          const slab part{begin, end, 3, 4};
          const hpeTiles tiles{0, part.tiles_x(), {part.tiles_x(), 1, 1}};
          const keep_compressed<float> k{kept.data(), g.now.data(), g.layout, part, w, bits};
          v.keep_compressed_f32(&k, &tiles);
          const correlate_compressed<float> c{
              image.data(), illumination.data(), kept.data(), ones.data(), g.layout, part, w, bits};
          v.correlate_compressed_f32(&c, &tiles);
          begin = end;
        }
        if (first.empty()) first = kept;
        EXPECT_EQ(kept, first) << v.name << ": compression has no fused operations";
        float most = 0;
        std::size_t i = 0;
        for (int64_t x = 0; x < w.nx; ++x)
          for (int64_t y = 0; y < w.ny; ++y)
            for (int64_t z = 0; z < w.nz; ++z, ++i) {
              const float wanted = g.now[static_cast<std::size_t>(g.layout.index(w.x + x, w.y + y, w.z + z))];
              const float error = std::abs(image[i] - wanted);
              ASSERT_LE(error, bound[i] * 1.001F + 1e-6F) << v.name << ", " << bits << " bits";
              ASSERT_NEAR(illumination[i], image[i] * image[i], 1e-6F);
              most = std::max(most, error / bound[i]);
            }
        EXPECT_GT(most, 0.5F) << "fewer bits would do";
      }
  }
}

TEST(KeepAndCorrelate, CellsThatTheWaveHasNotReachedStayZero) {
  problem<float> g(1, 1, 32, y_ends::flat, false);
  const window w{0, 0, 0, 1, 1, 32};
  const slab part{0, 1, 1, 1};
  const hpeTiles tiles{0, 1, {1, 1, 1}};
  for (const std::pair<float, float>& range : {std::pair{-0.37F, 1.9F}, {-2.0F, 0.01F}, {0.0F, 5.0F}, {-5.0F, 0.0F}}) {
    std::fill(g.now.begin(), g.now.end(), 0.0F);
    g.now[static_cast<std::size_t>(g.layout.index(0, 0, 3))] = range.first;
    g.now[static_cast<std::size_t>(g.layout.index(0, 0, 4))] = range.second;
    std::vector<uint8_t> kept(static_cast<std::size_t>(compressed_row<float>(32, 8)));
    std::vector<float> image(32, 0), illumination(32, 0), ones(g.now.size(), 1);
    const keep_compressed<float> k{kept.data(), g.now.data(), g.layout, part, w, 8};
    keep_compressed_f32(&k, &tiles);
    const correlate_compressed<float> c{
        image.data(), illumination.data(), kept.data(), ones.data(), g.layout, part, w, 8};
    correlate_compressed_f32(&c, &tiles);
    for (std::size_t z = 5; z < 32; ++z) EXPECT_NEAR(image[z], 0, 1e-6) << range.first;
  }
}

TEST(KeepAndCorrelate, ConstantBlocksAreKeptExactly) {
  problem<float> g(4, 1, 70, y_ends::flat, false);
  for (const float value : {0.0F, -3.25F, 1e-40F}) {
    std::fill(g.now.begin(), g.now.end(), value);
    const window w{0, 0, 0, 4, 1, 70};
    const slab part{0, 4, 4, 1};
    const hpeTiles tiles{0, 1, {1, 1, 1}};
    std::vector<uint8_t> kept(static_cast<std::size_t>(4 * compressed_row<float>(70, 8)));
    std::vector<float> image(280, 0), illumination(280, 0), ones(g.now.size(), 1);
    const keep_compressed<float> k{kept.data(), g.now.data(), g.layout, part, w, 8};
    keep_compressed_f32(&k, &tiles);
    const correlate_compressed<float> c{
        image.data(), illumination.data(), kept.data(), ones.data(), g.layout, part, w, 8};
    correlate_compressed_f32(&c, &tiles);
    for (const float v : image) EXPECT_EQ(v, value);
  }
}

}  // namespace
}  // namespace hpe::kernels
