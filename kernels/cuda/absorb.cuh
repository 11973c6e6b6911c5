#pragma once

/// The body for GPUs of the kernel of kernels/absorb.h. The first blocks process the rows that are entirely in a layer
/// of x or y. Each warp processes a row, so that its lanes process neighbouring cells and keep the rates of both axes
/// in registers. The other blocks process the ends of all other rows, which are in layers of z.
///
/// The operations at a cell, and their order, are those of kernels/host/absorb_bodies.h.

#include "kernels/absorb.h"
#include "kernels/cuda/wave_arithmetic.cuh"

namespace hpe::kernels::cuda {
namespace {

/// The rates of a cell in a layer, for one axis.
template <class T>
struct cell_rates {
  T r[layer_rates];

  cell_rates() = default;
  __device__ cell_rates(const absorb<T>& p, int axis, int64_t number) {
    const T* const from = p.rates_of(axis, number);
    const auto width = static_cast<int>(p.ends[axis].width());
#pragma unroll
    for (int k = 0; k < layer_rates; ++k) r[k] = from[k * width];
  }
};

/// Updates the memories of a cell for one axis, and returns `next` minus speed times the terms of the layer of this
/// axis. `now` and `memory` point to the elements of the cell; `apart` is the distance between the cell's memories.
template <int radius, int axis, class T>
__device__ T absorbed(const absorb<T>& p, const T* __restrict__ now, int64_t stride, T* memory, int64_t apart,
                      const cell_rates<T>& rates, T speed, T next) {
  const T outer = memory[0], middle = memory[apart], inner = memory[2 * apart];
  T slope = 0, curvature = multiply(p.curvatures[axis][0], *now);
#pragma unroll
  for (int k = 1; k <= radius; ++k) {
    const T before = now[-k * stride], after = now[k * stride];
    slope = multiply_add(p.slopes[axis][k - 1], add(after, -before), slope);
    curvature = multiply_add(p.curvatures[axis][k], add(before, after), curvature);
  }
  const T(&r)[layer_rates] = rates.r;
  const T third = multiply_add(r[0], inner, multiply(r[6], slope));
  const T driven = multiply_add(r[1], third, multiply_add(r[4], curvature, multiply(r[5], slope)));
  const T second = multiply_add(r[0], middle, driven);
  const T terms = multiply_add(r[1], second, multiply_add(r[2], curvature, multiply(r[3], slope)));
  const T first = multiply_add(r[0], outer, terms);
  memory[2 * apart] = third;
  memory[apart] = second;
  memory[0] = first;
  return multiply_add(-speed, first, next);
}

/// Applies all layers to the cells of one row, by one warp.
template <int radius, bool in_x, bool in_y, class T>
__device__ void absorb_row(const absorb<T>& p, int64_t x, int64_t y) {
  const int64_t row = p.layout.index(x, y, 0), plane = p.layout.plane, width = p.layout.row;
  const T* const now = p.now + row;
  cell_rates<T> rates_x, rates_y;
  T *memory_x = nullptr, *memory_y = nullptr;
  if (in_x) {
    rates_x = cell_rates<T>(p, 0, p.ends[0].number(x));
    memory_x = p.memory + p.place(0, x, y, 0);
  }
  if (in_y) {
    rates_y = cell_rates<T>(p, 1, p.ends[1].number(y));
    memory_y = p.memory + p.place(1, x, y, 0);
  }
  const int64_t apart_x = p.cells(0), apart_y = p.cells(1), apart_z = p.cells(2);
  const auto nz = static_cast<int>(p.layout.nz);
  const auto before_z = static_cast<int>(p.ends[2].before), after_z = nz - static_cast<int>(p.ends[2].after);
  for (int z = static_cast<int>(threadIdx.x) % 32; z < nz; z += 32) {
    T next = p.next[row + z];
    const T speed = p.speed[row + z];
    if (in_x) next = absorbed<radius, 0>(p, now + z, plane, memory_x + z, apart_x, rates_x, speed, next);
    if (in_y) next = absorbed<radius, 1>(p, now + z, width, memory_y + z, apart_y, rates_y, speed, next);
    if (z < before_z || z >= after_z)
      next = absorbed<radius, 2>(p, now + z, 1, p.memory + p.place(2, x, y, z), apart_z,
                                 cell_rates<T>(p, 2, p.ends[2].number(z)), speed, next);
    p.next[row + z] = next;
  }
}

/// Processes the rows of block `block`, out of all rows that are in a layer of x or y. Rows in layers of x come first.
template <int radius, class T>
__device__ void absorb_rows(const absorb<T>& p, const absorb_blocks& blocks, uint32_t block) {
  const auto ny = static_cast<uint32_t>(p.layout.ny), wide_y = static_cast<uint32_t>(p.ends[1].width());
  const auto in_planes = static_cast<uint32_t>(p.layer_planes()) * ny;
  const uint32_t row = block * static_cast<uint32_t>(absorb_block_rows) + threadIdx.x / 32;
  if (row >= blocks.rows) return;
  if (row < in_planes) {
    const int64_t x = p.ends[0].cell(p.ends[0].below(p.x0) + row / ny), y = row % ny;
    if (p.ends[1].number(y) >= 0)
      absorb_row<radius, true, true>(p, x, y);
    else
      absorb_row<radius, true, false>(p, x, y);
    return;
  }
  const uint32_t n = row - in_planes;
  absorb_row<radius, false, true>(p, p.first_other_plane() + n / wide_y, p.ends[1].cell(n % wide_y));
}

/// Processes the cells of block `block`, out of all cells of layers of z in rows that are in no layer of x or y.
template <int radius, class T>
__device__ void absorb_ends(const absorb<T>& p, const absorb_blocks& blocks, uint32_t block) {
  const auto wide = static_cast<uint32_t>(p.ends[2].width()), each = static_cast<uint32_t>(absorb_block_cells);
  // rows of a plane that are in no layer of y
  const auto rows = static_cast<uint32_t>(p.layout.ny - p.ends[1].width());
  const int64_t apart = p.cells(2), x0 = p.first_other_plane();
  const uint32_t begin = block * each, end = min(begin + each, static_cast<uint32_t>(blocks.ends));
  for (uint32_t n = begin + threadIdx.x; n < end; n += blockDim.x) {
    const uint32_t row = n / wide, number = n % wide;
    const int64_t x = x0 + row / rows, y = p.ends[1].before + row % rows, z = p.ends[2].cell(number);
    const int64_t cell = p.layout.index(x, y, z);
    p.next[cell] = absorbed<radius, 2>(p, p.now + cell, 1, p.memory + p.place(2, x, y, z), apart,
                                       cell_rates<T>(p, 2, number), p.speed[cell], p.next[cell]);
  }
}

template <int radius, class T>
__device__ void absorb_block(const absorb<T>& p) {
  const absorb_blocks blocks(p);
  const auto of_rows = static_cast<uint32_t>(blocks.of_rows());
  if (blockIdx.x < of_rows)
    absorb_rows<radius>(p, blocks, blockIdx.x);
  else
    absorb_ends<radius>(p, blocks, blockIdx.x - of_rows);
}

template <class T>
__device__ void run(const absorb<T>& p) {
  if (p.layout.radius == 2) return absorb_block<2>(p);
  if (p.layout.radius == 4) return absorb_block<4>(p);
  if (p.layout.radius == 6) return absorb_block<6>(p);
  absorb_block<8>(p);
}

}  // namespace
}  // namespace hpe::kernels::cuda
