// The kernels on devices: for any division of the grid, every device computes the same bits as the host code on a
// machine that fuses a * b + c.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "hpe/hpe.hpp"
#include "hpe/kernel.h"
#include "tests/kernels/problem.h"

extern "C" {
#define HPE_KERNEL(name, ...) void name(const void* parameters, const hpeTiles* tiles);
#include "kernels/kernels.def"
}

namespace hpe::kernels {
namespace {

template <class T>
struct body_of;
template <>
struct body_of<float> {
  static constexpr const char *suffix = "_f32", *keep = "keep_f32", *correlate = "correlate_f32";
  static hpeHostKernel step(int64_t radius) {
    constexpr hpeHostKernel all[] = {wave_step_2_f32,  wave_step_4_f32,  wave_step_6_f32,  wave_step_8_f32,
                                     wave_step_10_f32, wave_step_12_f32, wave_step_14_f32, wave_step_16_f32};
    return all[radius - 1];
  }
};
template <>
struct body_of<double> {
  static constexpr const char *suffix = "_f64", *keep = "keep_f64", *correlate = "correlate_f64";
  static hpeHostKernel step(int64_t radius) {
    constexpr hpeHostKernel all[] = {wave_step_4_f64, wave_step_8_f64, wave_step_12_f64, wave_step_16_f64};
    return all[radius / 2 - 1];
  }
};

bool has_gpus() { return hpe::device_info(0).kind == HPE_DEVICE_CUDA; }

bool host_fuses() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

template <class T>
array<T> on_device(int device, const std::vector<T>& values) {
  array<T> a(values.size(), hpe::on_device(device));
  std::copy(values.begin(), values.end(), a.begin());
  return a;
}

template <class T>
std::vector<T> copy_of(const array<T>& a) {
  return {a.begin(), a.end()};
}

template <class T>
struct outcome {
  std::vector<T> next, record;
};

template <class T>
outcome<T> on_host(const problem<T>& g) {
  outcome<T> o{g.next, std::vector<T>(g.recorded.size())};
  wave_step<T> p = g.parameters();
  p.next = o.next.data();
  p.part = {0, g.layout.nx, g.layout.nx, g.layout.ny};
  p.injected = g.injected.data();
  p.amplitude = g.amplitude.data();
  p.injected_count = static_cast<int64_t>(g.injected.size());
  p.recorded = g.recorded.data();
  p.record = o.record.data();
  p.recorded_count = static_cast<int64_t>(g.recorded.size());
  const hpeTiles all{0, 1, {1, 1, 1}};
  body_of<T>::step(g.layout.radius)(&p, &all);
  return o;
}

/// Returns the indices in `list` of the points in the planes [x0, x1).
std::vector<std::size_t> inside(const std::vector<point>& list, int64_t x0, int64_t x1) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].x >= x0 && list[i].x < x1) numbers.push_back(i);
  return numbers;
}

template <class T>
outcome<T> on_devices(const problem<T>& g, const std::vector<slab>& slabs) {
  const std::string name = "wave_step_" + std::to_string(2 * g.layout.radius) + body_of<T>::suffix;
  const kernel<wave_step<T>> step{module(), name.c_str()};
  const int devices = device_count();
  outcome<T> o{{}, std::vector<T>(g.recorded.size())};
  const array<T> now = on_device(0, g.now), next = on_device(devices - 1, g.next), speed = on_device(0, g.speed);
  const array<T> potential = on_device(0, g.potential);
  const array<T> tx = on_device(0, g.taper_x), ty = on_device(0, g.taper_y), tz = on_device(0, g.taper_z);
  const auto plane = [&](const array<T>& a, int64_t x0, int64_t x1) {
    return a.subspan(static_cast<std::size_t>((x0 + g.layout.radius) * g.layout.plane),
                     static_cast<std::size_t>((x1 - x0) * g.layout.plane));
  };
  int device = 0;
  for (const slab& part : slabs) {
    const auto into = inside(g.injected, part.x0, part.x1), from = inside(g.recorded, part.x0, part.x1);
    std::vector<point> sources, receivers;
    std::vector<T> amplitudes;
    for (const std::size_t i : into) sources.push_back(g.injected[i]), amplitudes.push_back(g.amplitude[i]);
    for (const std::size_t i : from) receivers.push_back(g.recorded[i]);
    const array<point> at_sources = on_device(device, sources), at_receivers = on_device(device, receivers);
    const array<T> amplitude = on_device(device, amplitudes), record(from.size(), hpe::on_device(device));
    wave_step<T> p = g.parameters();
    p.now = now.data();
    p.next = next.data();
    p.speed = speed.data();
    p.potential = potential.data();
    p.taper_x = tx.data();
    p.taper_y = ty.data();
    p.taper_z = tz.data();
    p.part = part;
    p.injected = at_sources.data();
    p.amplitude = amplitude.data();
    p.injected_count = static_cast<int64_t>(into.size());
    p.recorded = at_receivers.data();
    p.record = record.data();
    p.recorded_count = static_cast<int64_t>(from.size());
    launch_on(device, step, step_shape(part, p.across), p,
              in(plane(now, part.x0 - g.layout.radius, part.x1 + g.layout.radius)),
              inout(plane(next, part.x0, part.x1)), in(plane(speed, part.x0, part.x1)), in(potential), in(tx), in(ty),
              in(tz), in(at_sources), in(amplitude), in(at_receivers), out(record));
    for (std::size_t i = 0; i < from.size(); ++i) o.record[from[i]] = record[i];
    device = (device + 1) % devices;
  }
  o.next = copy_of(next);
  return o;
}

/// Returns slabs as applications cut them for these devices. The slabs end at `ends`.
template <class T>
std::vector<slab> cut(const problem<T>& g, const std::vector<int64_t>& ends) {
  std::vector<slab> slabs;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    slabs.push_back(has_gpus() ? make_cuda_slab(whole_section(g.layout), g.ends, begin, end, 7)
                               : make_slab(g.layout, whole_section(g.layout), begin, end, sizeof(T)));
    begin = end;
  }
  return slabs;
}

/// Returns further problems: sizes at the edges of the tiles along which kernels march, other orders, and points that
/// are listed twice.
template <class T>
std::vector<problem<T>> large_problems() {
  std::vector<problem<T>> all = problems<T>();
  for (const int64_t radius : {2, 6, 8}) all.emplace_back(21, 19, 70, y_ends::closed, true, radius);
  all.emplace_back(21, 1, 70, y_ends::flat, true, 8);
  if (std::is_same_v<T, float>)
    for (const int64_t radius : {1, 3, 5, 7}) all.emplace_back(21, 19, 70, y_ends::closed, false, radius);
  all.emplace_back(41, 37, 150, y_ends::closed, false);
  all.emplace_back(70, 16, 64, y_ends::closed, true);
  all.emplace_back(19, 50, 13, y_ends::closed, false);
  for (problem<T>& g : all) {
    const std::size_t n = g.injected.size();
    for (std::size_t i = 0; i < 600; ++i) {
      g.injected.push_back(g.injected[i % n]);
      g.amplitude.push_back(static_cast<T>(0.25 + 0.001 * static_cast<double>(i)));
    }
  }
  return all;
}

template <class T>
void expect_the_bits_of_the_host() {
  if (!host_fuses()) GTEST_SKIP() << "this host rounds a * b + c twice";
  std::mt19937 random(7);
  for (const problem<T>& g : large_problems<T>()) {
    SCOPED_TRACE(testing::Message() << g.layout.nx << " x " << g.layout.ny << " x " << g.layout.nz);
    const int64_t nx = g.layout.nx;
    const outcome<T> wanted = on_host(g);
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<int64_t> ends{nx};
      for (int n = 0; n < trial && nx > 1; ++n)
        ends.push_back(1 + static_cast<int64_t>(random() % static_cast<unsigned>(nx - 1)));
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
      const outcome<T> got = on_devices(g, cut(g, ends));
      EXPECT_TRUE(same_bits(wanted.next, got.next)) << ends.size() << " slabs";
      EXPECT_TRUE(same_bits(wanted.record, got.record)) << ends.size() << " slabs";
    }
  }
}

TEST(OnDevices, StepsHaveTheBitsOfTheHost) { expect_the_bits_of_the_host<float>(); }
TEST(OnDevices, StepsInDoubleHaveTheBitsOfTheHost) { expect_the_bits_of_the_host<double>(); }

TEST(OnDevices, TilesOfAnySizeGiveTheSameBits) {
  if (!has_gpus()) GTEST_SKIP() << "soft devices run the host code, whose tiles another test checks";
  const problem<float> g(30, 45, 131, y_ends::closed, true);
  const outcome<float> wanted = on_devices(g, {make_cuda_slab(whole_section(g.layout), g.ends, 0, 30, 132)});
  for (const slab& part :
       {slab{0, 30, 7, march_rows, march_cells}, slab{0, 30, 1, march_rows, march_cells},
        slab{0, 30, 9, march_rows, march_cells, 4}, slab{0, 30, 8, 3, 128}, slab{0, 30, 30, 45, 5}}) {
    const outcome<float> got = on_devices(g, {part});
    EXPECT_TRUE(same_bits(wanted.next, got.next)) << part.tile_x;
    EXPECT_TRUE(same_bits(wanted.record, got.record)) << part.tile_x;
  }
}

template <class T>
void expect_kept_and_correlated(T tolerance) {
  const kernel<keep<T>> keep_it{module(), body_of<T>::keep};
  const kernel<correlate<T>> correlate_it{module(), body_of<T>::correlate};
  const problem<T> g(20, 9, 70, y_ends::closed, false);
  const window w{3, 2, 5, 13, 6, 57};
  const auto cells = static_cast<std::size_t>(w.nx * w.ny * w.nz);
  const array<T> now = on_device(0, g.now), later = on_device(0, g.next);
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{20}, {2, 7, 8, 20}}) {
    const array<T> kept = on_device(0, std::vector<T>(cells, T(-1))), image = on_device(0, std::vector<T>(cells, T(1)));
    const array<T> illumination = on_device(0, std::vector<T>(cells, T(2)));
    for (const slab& part : cut(g, ends)) {
      const keep<T> k{kept.data(), now.data(), g.layout, part, w};
      launch_on(0, keep_it, window_shape(part, w), k, inout(kept), in(now));
      const correlate<T> c{image.data(), illumination.data(), kept.data(), later.data(), g.layout, part, w};
      launch_on(0, correlate_it, window_shape(part, w), c, inout(image), inout(illumination), in(kept), in(later));
    }
    std::size_t i = 0;
    for (int64_t x = 0; x < w.nx; ++x)
      for (int64_t y = 0; y < w.ny; ++y)
        for (int64_t z = 0; z < w.nz; ++z, ++i) {
          const auto cell = static_cast<std::size_t>(g.layout.index(w.x + x, w.y + y, w.z + z));
          ASSERT_EQ(kept[i], g.now[cell]);
          ASSERT_NEAR(image[i], 1 + g.now[cell] * g.next[cell], tolerance);
          ASSERT_NEAR(illumination[i], 2 + g.now[cell] * g.now[cell], tolerance);
        }
  }
}

TEST(OnDevices, KeepAndCorrelate) {
  expect_kept_and_correlated<float>(3e-7F);
  expect_kept_and_correlated<double>(1e-15);
}

TEST(OnDevices, KeepAndCorrelateCompressed) {
  const kernel<keep_compressed<float>> keep_it{module(), "keep_compressed_f32"};
  const kernel<correlate_compressed<float>> correlate_it{module(), "correlate_compressed_f32"};
  const problem<float> g(20, 9, 140, y_ends::closed, false);
  const window w{3, 2, 5, 13, 6, 131};
  const auto cells = static_cast<std::size_t>(w.nx * w.ny * w.nz);
  const array<float> now = on_device(0, g.now), ones = on_device(0, std::vector<float>(g.now.size(), 1));
  const auto [lowest, largest] = std::minmax_element(g.now.begin(), g.now.end());
  for (const int64_t bits : {4, 8, 16})
    for (const std::vector<int64_t>& ends : {std::vector<int64_t>{20}, {2, 7, 8, 20}}) {
      // Rows of five blocks; the bytes after the last row must not change.
      const auto bytes = static_cast<std::size_t>(w.nx * w.ny * compressed_row<float>(w.nz, bits));
      const array<uint8_t> kept = on_device(0, std::vector<uint8_t>(bytes + block_cells, 77));
      const array<float> image = on_device(0, std::vector<float>(cells, 0)),
                         illumination = on_device(0, std::vector<float>(cells, 0));
      for (const slab& part : cut(g, ends)) {
        const keep_compressed<float> k{kept.data(), now.data(), g.layout, part, w, bits};
        launch_on(0, keep_it, window_shape(part, w), k, inout(kept), in(now));
        const correlate_compressed<float> c{
            image.data(), illumination.data(), kept.data(), ones.data(), g.layout, part, w, bits};
        launch_on(0, correlate_it, window_shape(part, w), c, inout(image), inout(illumination), in(kept), in(ones));
      }
      for (std::size_t n = bytes; n < kept.size(); ++n) ASSERT_EQ(kept[n], 77);
      const float bound = 0.5F * (*largest - *lowest) / static_cast<float>((1 << bits) - 2) + 1e-6F;
      std::size_t i = 0;
      for (int64_t x = 0; x < w.nx; ++x)
        for (int64_t y = 0; y < w.ny; ++y)
          for (int64_t z = 0; z < w.nz; ++z, ++i) {
            const float wanted = g.now[static_cast<std::size_t>(g.layout.index(w.x + x, w.y + y, w.z + z))];
            ASSERT_NEAR(image[i], wanted, bound) << bits << " bits";
          }
    }
}

TEST(CudaSlab, TilesCoverIt) {
  for (const int64_t n : {1, 7, 100, 401, 1000})
    for (const y_ends ends : {y_ends::flat, y_ends::periodic, y_ends::closed}) {
      const field_layout l = make_layout(n, ends == y_ends::flat ? 1 : n, n, ends, false);
      const section across = whole_section(l);
      const slab s = make_cuda_slab(across, ends, 0, n, 132);
      EXPECT_GE(s.tile_y * s.tiles_y(across), l.ny);
      EXPECT_GE(s.tile_z * s.tiles_z(across), n);
      const int64_t columns = int64_t{s.tiles_y(across)} * s.tiles_z(across);
      std::vector<int64_t> reached(static_cast<std::size_t>(columns));  // for each column, the planes covered so far
      for (int64_t i = 0; i < step_shape(s, across).grid[0]; ++i) {
        const column_tile t = find_tile({s.whole, s.tile_x}, columns, n, i);
        ASSERT_LT(t.column, columns);
        ASSERT_EQ(t.x0, reached[static_cast<std::size_t>(t.column)]);
        ASSERT_LT(t.x0, t.x1);
        reached[static_cast<std::size_t>(t.column)] = t.x1;
      }
      for (const int64_t planes : reached) ASSERT_EQ(planes, n);
    }
}

}  // namespace
}  // namespace hpe::kernels
