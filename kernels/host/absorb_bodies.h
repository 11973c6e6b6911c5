#pragma once

/// The body for soft devices of the kernel of kernels/absorb.h.

#include "kernels/absorb.h"
#include "kernels/host/wave_bodies.h"

namespace {

// The number of cells of a row that are computed together.
inline constexpr int64_t absorbed_at_once = 64;

// Applies the layer of one axis to `count` cells from (x, y, z) on; count is at most absorbed_at_once.
template <class T>
void absorb_cells(const absorb<T>& p, int axis, int64_t x, int64_t y, int64_t z, int64_t count) {
  const int64_t cell = p.layout.index(x, y, z), stride = p.stride(axis), width = p.ends[axis].width();
  const T* now = p.now + cell;
  T slope[absorbed_at_once], curvature[absorbed_at_once];
  for (int64_t i = 0; i < count; ++i) {
    slope[i] = 0;
    curvature[i] = p.curvatures[axis][0] * now[i];
  }
  for (int64_t k = 1; k <= p.layout.radius; ++k) {
    const T first = p.slopes[axis][k - 1], second = p.curvatures[axis][k];
    const T *before = now - k * stride, *after = now + k * stride;
    for (int64_t i = 0; i < count; ++i) {
      slope[i] = multiply_add(first, after[i] - before[i], slope[i]);
      curvature[i] = multiply_add(second, before[i] + after[i], curvature[i]);
    }
  }
  const int64_t place = p.place(axis, x, y, z), apart = p.cells(axis);
  T* __restrict outer = p.memory + place;
  T* __restrict middle = outer + apart;
  T* __restrict inner = middle + apart;
  T* __restrict next = p.next + cell;
  const T* __restrict speed = p.speed + cell;
  const T* rate = p.rates_of(axis, p.ends[axis].number(axis == 0 ? x : axis == 1 ? y : z));
  const int64_t step = axis == 2 ? 1 : 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T* r = rate + i * step;
    const T decay = r[0], gain = r[width];
    const T third = multiply_add(decay, inner[i], r[6 * width] * slope[i]);
    const T driven = multiply_add(gain, third, multiply_add(r[4 * width], curvature[i], r[5 * width] * slope[i]));
    const T second = multiply_add(decay, middle[i], driven);
    const T terms = multiply_add(gain, second, multiply_add(r[2 * width], curvature[i], r[3 * width] * slope[i]));
    const T first = multiply_add(decay, outer[i], terms);
    inner[i] = third;
    middle[i] = second;
    outer[i] = first;
    next[i] = multiply_add(-speed[i], first, next[i]);
  }
}

template <class T>
void absorb_row(const absorb<T>& p, int axis, int64_t x, int64_t y, int64_t z0, int64_t z1) {
  for (int64_t z = z0; z < z1; z += absorbed_at_once) absorb_cells(p, axis, x, y, z, least(absorbed_at_once, z1 - z));
}

template <class T>
void run(const absorb<T>& p, const hpeTiles& tiles) {
  const int64_t nz = p.layout.nz;
  for (int64_t x = p.x0 + int64_t(tiles.begin); x < p.x0 + int64_t(tiles.end); ++x)
    for (int64_t y = 0; y < p.layout.ny; ++y) {
      if (p.ends[0].number(x) >= 0) absorb_row(p, 0, x, y, 0, nz);
      if (p.ends[1].number(y) >= 0) absorb_row(p, 1, x, y, 0, nz);
      absorb_row(p, 2, x, y, 0, p.ends[2].before);
      absorb_row(p, 2, x, y, nz - p.ends[2].after, nz);
    }
}

}  // namespace
