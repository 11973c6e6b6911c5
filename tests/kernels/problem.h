#pragma once

/// Steps of the wave kernels on random numbers.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/wave_parameters.h"

namespace hpe::kernels {

/// A step that uses every feature of the kernels, on random numbers.
template <class T>
struct problem {
  field_layout layout;
  y_ends ends;
  bool free_surface;
  std::vector<T> now, next, speed, potential, taper_x, taper_y, taper_z;
  std::vector<point> injected, recorded;
  std::vector<T> amplitude;

  problem(int64_t nx, int64_t ny, int64_t nz, y_ends how, bool surface, int64_t radius = usual_radius,
          bool with_potential = false)
      : layout(make_layout(nx, ny, nz, how, surface, radius)), ends(how), free_surface(surface) {
    std::mt19937 random(static_cast<unsigned>(nx * 10007 + ny * 101 + nz));
    std::uniform_real_distribution<double> any(-1, 1);
    const auto fill = [&](std::vector<T>& v, double low, double high) {
      v.assign(static_cast<std::size_t>(layout.size()), T(0));
      for (int64_t x = 0; x < nx; ++x)
        for (int64_t y = 0; y < ny; ++y)
          for (int64_t z = 0; z < nz; ++z)
            v[static_cast<std::size_t>(layout.index(x, y, z))] =
                static_cast<T>(low + (high - low) * (any(random) + 1) / 2);
    };
    fill(now, -1, 1);
    fill(next, -1, 1);
    fill(speed, 0.01, 0.2);
    const auto taper = [&](std::vector<T>& v, int64_t count) {
      for (int64_t i = 0; i < count + row_multiple; ++i) v.push_back(static_cast<T>(0.9 + 0.1 * any(random)));
    };
    taper(taper_x, nx);
    taper(taper_y, ny);
    taper(taper_z, nz);
    const auto cell = [&](int64_t n) { return static_cast<int32_t>(random() % static_cast<unsigned>(n)); };
    for (int i = 0; i < 9; ++i) {
      injected.push_back({cell(nx), cell(ny), cell(nz)});
      recorded.push_back({cell(nx), cell(ny), cell(nz)});
      amplitude.push_back(static_cast<T>(any(random)));
    }
    if (with_potential) fill(potential, -0.5, 1);
  }

  wave_step<T> parameters() const {
    wave_step<T> p{};
    p.now = now.data();
    p.speed = speed.data();
    p.potential = potential.empty() ? nullptr : potential.data();
    p.taper_x = taper_x.data();
    p.taper_y = taper_y.data();
    p.taper_z = taper_z.data();
    p.layout = layout;
    p.ends = ends;
    p.free_surface = free_surface;
    p.across = whole_section(layout);
    p.set_weights(1, 0.81, 1.3);
    return p;
  }
};

template <class T>
std::vector<problem<T>> problems(int64_t radius = usual_radius) {
  std::vector<problem<T>> all;
  const bool potential = takes_potential(2 * radius);
  all.emplace_back(23, 1, 37, y_ends::flat, false, radius);
  all.emplace_back(23, 1, 16, y_ends::flat, true, radius, potential);
  all.emplace_back(12, 3, 45, y_ends::periodic, false, radius);
  all.emplace_back(17, 19, 29, y_ends::closed, false, radius);
  all.emplace_back(16, 11, 64, y_ends::closed, true, radius, potential);
  all.emplace_back(13, 18, 21, y_ends::closed, false, radius, potential);
  all.emplace_back(1, 1, 1, y_ends::flat, false, radius);
  return all;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace hpe::kernels
