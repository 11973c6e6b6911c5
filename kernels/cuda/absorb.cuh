#pragma once

/// The body of the kernel of kernels/absorb.h for GPUs: a thread takes a cell. The operations of a cell and their order
/// are those of kernels/host/absorb_bodies.h.

#include "kernels/absorb.h"
#include "kernels/cuda/wave_arithmetic.cuh"

namespace hpe::kernels::cuda {
namespace {

/// Adds the layer of one axis to the value of `next` at a cell.
template <class T>
__device__ T absorbed(const absorb<T>& p, int axis, int64_t x, int64_t y, int64_t z, int64_t number, T next) {
  const int64_t cell = p.layout.index(x, y, z), stride = p.stride(axis), width = p.ends[axis].width();
  const T* const now = p.now + cell;
  T slope = 0, curvature = multiply(p.curvatures[axis][0], *now);
  for (int64_t k = 1; k <= p.layout.radius; ++k) {
    const T before = now[-k * stride], after = now[k * stride];
    slope = multiply_add(p.slopes[axis][k - 1], add(after, -before), slope);
    curvature = multiply_add(p.curvatures[axis][k], add(before, after), curvature);
  }
  const int64_t apart = p.cells(axis);
  T* const memory = p.memory + p.place(axis, x, y, z);
  const T* const r = p.rates_of(axis, number);
  const T decay = r[0], gain = r[width];
  const T third = multiply_add(decay, memory[2 * apart], multiply(r[6 * width], slope));
  const T driven = multiply_add(gain, third, multiply_add(r[4 * width], curvature, multiply(r[5 * width], slope)));
  const T second = multiply_add(decay, memory[apart], driven);
  const T terms = multiply_add(gain, second, multiply_add(r[2 * width], curvature, multiply(r[3 * width], slope)));
  const T first = multiply_add(decay, memory[0], terms);
  memory[2 * apart] = third;
  memory[apart] = second;
  memory[0] = first;
  return multiply_add(-p.speed[cell], first, next);
}

/// All layers at a cell, x first.
template <class T>
__device__ void absorb_cell(const absorb<T>& p, int64_t x, int64_t y, int64_t z) {
  const int64_t at[3] = {x, y, z}, cell = p.layout.index(x, y, z);
  T next = p.next[cell];
#pragma unroll
  for (int axis = 0; axis < 3; ++axis)
    if (const int64_t number = p.ends[axis].number(at[axis]); number >= 0)
      next = absorbed(p, axis, x, y, z, number, next);
  p.next[cell] = next;
}

/// The cells of the layers are those of the planes in layers of x, then those of the other planes' rows in layers of y,
/// then the ends of the other rows.
template <class T>
__device__ void run(const absorb<T>& p) {
  const int64_t ny = p.layout.ny, nz = p.layout.nz, wide_y = p.ends[1].width(), wide_z = p.ends[2].width();
  const int64_t planes = p.layer_planes(), others = p.x1 - p.x0 - planes;
  const int64_t below = p.ends[0].below(p.x0), first = p.x0 > p.ends[0].before ? p.x0 : p.ends[0].before;
  const int64_t in_planes = planes * ny * nz, in_rows = others * wide_y * nz, at_ends = others * (ny - wide_y) * wide_z;
  const int64_t all = in_planes + in_rows + at_ends, threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t n = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < all; n += threads) {
    // Below 2^32 cells a division takes a fraction of the time that 64 bits take.
    if (n < in_planes) {
      const auto row = static_cast<uint32_t>(n / nz), rows = static_cast<uint32_t>(ny);
      absorb_cell(p, p.ends[0].cell(below + row / rows), row % rows, n - row * nz);
    } else if (const int64_t m = n - in_planes; m < in_rows) {
      const auto row = static_cast<uint32_t>(m / nz), rows = static_cast<uint32_t>(wide_y);
      absorb_cell(p, first + row / rows, p.ends[1].cell(row % rows), m - row * nz);
    } else {
      const int64_t m2 = m - in_rows;
      const auto row = static_cast<uint32_t>(m2 / wide_z), rows = static_cast<uint32_t>(ny - wide_y);
      absorb_cell(p, first + row / rows, p.ends[1].before + row % rows, p.ends[2].cell(m2 - row * wide_z));
    }
  }
}

}  // namespace
}  // namespace hpe::kernels::cuda
