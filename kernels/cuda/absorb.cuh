#pragma once

/// The body of the kernel of kernels/absorb.h for GPUs: a block takes cells of one plane, a thread one cell at a time.
/// The operations of a cell and their order are those of kernels/host/absorb_bodies.h.

#include "kernels/absorb.h"
#include "kernels/cuda/wave_arithmetic.cuh"

namespace hpe::kernels::cuda {
namespace {

/// Adds the layer of one axis to the value of `next` at a cell.
template <int radius, class T>
__device__ T absorbed(const absorb<T>& p, int axis, int64_t x, int64_t y, int64_t z, int64_t number, T next) {
  const int64_t cell = p.layout.index(x, y, z), stride = p.stride(axis), width = p.ends[axis].width();
  const T* const now = p.now + cell;
  T slope = 0, curvature = multiply(p.curvatures[axis][0], *now);
#pragma unroll
  for (int k = 1; k <= radius; ++k) {
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

/// The layers at a cell in rising order of axes. The cell lies in a layer of axis `from` and in none of lower axes.
template <int radius, int from, class T>
__device__ void absorb_cell(const absorb<T>& p, int64_t x, uint32_t y, uint32_t z) {
  const int64_t at[3] = {x, y, z}, cell = p.layout.index(x, y, z);
  T next = p.next[cell];
#pragma unroll
  for (int axis = from; axis < 3; ++axis)
    if (const int64_t number = p.ends[axis].number(at[axis]); number >= 0)
      next = absorbed<radius>(p, axis, x, y, z, number, next);
  p.next[cell] = next;
}

/// First come the blocks of the planes in layers of x, which have the most cells.
template <int radius, class T>
__device__ void absorb_block(const absorb<T>& p) {
  const auto ny = static_cast<uint32_t>(p.layout.ny), nz = static_cast<uint32_t>(p.layout.nz);
  const auto wide_y = static_cast<uint32_t>(p.ends[1].width()), wide_z = static_cast<uint32_t>(p.ends[2].width());
  const auto each = static_cast<uint32_t>(absorb_block_cells);
  const absorb_blocks blocks(p);
  const uint32_t whole = static_cast<uint32_t>(p.layer_planes() * blocks.of_layer_plane);
  if (blockIdx.x < whole) {
    const auto per_plane = static_cast<uint32_t>(blocks.of_layer_plane), begin = blockIdx.x % per_plane * each;
    const int64_t x = p.ends[0].cell(p.ends[0].below(p.x0) + blockIdx.x / per_plane);
    for (uint32_t n = begin + threadIdx.x; n < begin + each && n < ny * nz; n += blockDim.x)
      absorb_cell<radius, 0>(p, x, n / nz, n % nz);
    return;
  }
  const auto per_plane = static_cast<uint32_t>(blocks.of_other_plane), block = blockIdx.x - whole;
  const int64_t x = (p.x0 > p.ends[0].before ? p.x0 : p.ends[0].before) + block / per_plane;
  const uint32_t begin = block % per_plane * each, in_rows = wide_y * nz, all = in_rows + (ny - wide_y) * wide_z;
  for (uint32_t n = begin + threadIdx.x; n < begin + each && n < all; n += blockDim.x) {
    if (n < in_rows) {
      absorb_cell<radius, 1>(p, x, static_cast<uint32_t>(p.ends[1].cell(n / nz)), n % nz);
    } else {
      const uint32_t m = n - in_rows, row = static_cast<uint32_t>(p.ends[1].before) + m / wide_z;
      absorb_cell<radius, 2>(p, x, row, static_cast<uint32_t>(p.ends[2].cell(m % wide_z)));
    }
  }
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
