#pragma once

/// The bodies for GPUs of the kernels of kernels/wave_parameters.h. A block of threads computes one tile.
///
/// Invariant: the operations of kernels/cuda/wave_arithmetic.cuh compute every point in the same order, whatever the
/// tiles are.

#include "kernels/cuda/wave_arithmetic.cuh"
#include "kernels/cuda/wave_march.cuh"
#include "kernels/wave_parameters.h"

namespace hpe::kernels::cuda {
namespace {

struct tile {
  int64_t x0, x1, y0, y1, z0, z1;

  __device__ bool has(const point& p) const {
    return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1 && p.z >= z0 && p.z < z1;
  }
};

__device__ tile my_tile(const slab& part, const section& across) {
  const int64_t tiles_z = part.tiles_z(across), columns = part.tiles_y(across) * tiles_z;
  const column_tile mine = find_tile({part.whole, part.tile_x}, columns, part.x1 - part.x0, blockIdx.x);
  const int64_t y = across.y0 + mine.column / tiles_z * part.tile_y;
  const int64_t z = across.z0 + mine.column % tiles_z * part.tile_z;
  return {part.x0 + mine.x0, part.x0 + mine.x1, y, min(y + part.tile_y, across.y1), z, min(z + part.tile_z, across.z1)};
}

/// Returns `first` plus the weighted sum of the pairs of cells at distances 1 to radius. before(k) and after(k) return
/// the offsets of the two cells at distance k from `cell`.
template <int radius, class T, class Before, class After>
__device__ T axis(const T* weights, T first, const T* cell, Before before, After after) {
  T sum = multiply_add(weights[0], add(cell[before(1)], cell[after(1)]), first);
#pragma unroll
  for (int k = 2; k <= radius; ++k) sum = multiply_add(weights[k - 1], add(cell[before(k)], cell[after(k)]), sum);
  return sum;
}

template <int radius, class T>
__device__ T laplacian(const wave_step<T>& p, const T* cell, int64_t y) {
  const auto along = [](int64_t stride) { return [stride](int k) { return k * stride; }; };
  const T(&w)[3][most_radius] = p.weights;
  const int64_t row = p.layout.row, plane = p.layout.plane, ny = p.layout.ny;
  // multiply() rounds a product in the same way as a fused multiply-add that adds it to -0.
  const T z = axis<radius>(w[2], multiply(p.centre, *cell), cell, along(-1), along(1));
  const T x = axis<radius>(w[0], T(-0.0), cell, along(-plane), along(plane));
  const T sum = add(z, x);
  if (p.ends == y_ends::flat) return sum;
  if (p.ends == y_ends::closed) return add(sum, axis<radius>(w[1], T(-0.0), cell, along(-row), along(row)));
  const auto before = [=](int k) { return (((y - k) % ny + ny) % ny - y) * row; };
  const auto after = [=](int k) { return ((y + k) % ny - y) * row; };
  return add(sum, axis<radius>(w[1], T(-0.0), cell, before, after));
}

/// Computes a tile of any size, with any number of threads.
template <int radius, class T>
__device__ void step_cells(const wave_step<T>& p, const tile& t) {
  const int64_t rows = t.y1 - t.y0;
  const auto width = static_cast<int>(t.z1 - t.z0), cells = static_cast<int>((t.x1 - t.x0) * rows * width);
  for (int n = static_cast<int>(threadIdx.x); n < cells; n += static_cast<int>(blockDim.x)) {
    const int64_t x = t.x0 + n / width / rows, y = t.y0 + n / width % rows, z = t.z0 + n % width;
    const int64_t cell = p.layout.index(x, y, z);
    const T twice = 2 * multiply(p.taper_x[x], p.taper_y[y]);
    T curvature = laplacian<radius>(p, p.now + cell, y);
    if (p.potential != nullptr) curvature = multiply_add(-p.potential[cell], p.now[cell], curvature);
    p.next[cell] = stepped(p.now[cell], p.next[cell], p.speed[cell], curvature, twice, p.taper_z[z]);
  }
}

/// Computes the cells of a quad (wave_march.cuh) in a march, without a potential.
struct damped_point {
  const wave_step<float>& p;
  float taper_y, twice;
  quad taper_z;

  __device__ void start(bool computes, int64_t y, int64_t z, int64_t /*x*/) {
    taper_y = computes ? p.taper_y[y] : 0;
    taper_z = computes ? load_quad(p.taper_z + z) : quad{};
  }
  __device__ void plane(int64_t x) { twice = 2 * multiply(p.taper_x[x], taper_y); }
  __device__ float step(int i, float here, float before, float speed, float laplacian) const {
    return stepped(here, before, speed, laplacian, twice, taper_z.v[i]);
  }
};

/// Computes the cells of a quad in a march, with a potential. Loads the potential of the quad in the next plane ahead
/// of its use.
struct potential_point : damped_point {
  const float* place;
  int64_t last;  ///< the last plane of the thread's range
  quad here, ahead;

  __device__ potential_point(const wave_step<float>& p, const tile& t) : damped_point{p, 0, 0, {}}, last(t.x1 - 1) {}

  __device__ void start(bool computes, int64_t y, int64_t z, int64_t x) {
    damped_point::start(computes, y, z, x);
    place = p.potential + p.layout.index(0, y, z);
    if (computes) ahead = load_quad(place + x * p.layout.plane);
  }
  __device__ void plane(int64_t x) {
    damped_point::plane(x);
    here = ahead;
    ahead = load_quad(place + min(x + 1, last) * p.layout.plane);
  }
  __device__ float step(int i, float now, float before, float speed, float laplacian) const {
    return damped_point::step(i, now, before, speed, multiply_add(-here.v[i], now, laplacian));
  }
};

template <int radius, class T>
__device__ void step_tile(const wave_step<T>& p, const tile& t) {
  step_cells<radius>(p, t);
}
template <int radius>
__device__ void step_tile(const wave_step<float>& p, const tile& t) {
  const bool fits = p.part.tile_y == march_rows && p.part.tile_z == march_cells && blockDim.x == march_threads;
  if (p.ends != y_ends::closed || !fits) return step_cells<radius>(p, t);
  constexpr int depth = radius <= 4 ? 2 : 1;
  __shared__ march_memory<radius, march_cells, march_rows, depth> memory;
  const march_range range{t.x0, t.x1, p.across.y1, p.across.z1, t.y0, t.z0};
  if constexpr (takes_potential(2 * radius))
    if (p.potential != nullptr) return march(memory, p, range, potential_point(p, t));
  march(memory, p, range, damped_point{p, 0, 0, {}});
}

/// Adds the amplitudes of the sources that are in a tile. If a cell is listed several times, the thread of the cell's
/// first entry adds all amplitudes of the cell, in the order of the list.
template <class T>
__device__ void inject(const wave_step<T>& p, const tile& t) {
  __shared__ int64_t cells[march_threads];
  const auto me = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int64_t begin = 0; begin < p.injected_count; begin += threads) {
    int64_t mine = -1;
    if (begin + me < p.injected_count) {
      const point at = p.injected[begin + me];
      if (t.has(at)) mine = p.layout.index(at.x, at.y, at.z);
    }
    cells[me] = mine;
    if (__syncthreads_or(mine >= 0) == 0) continue;
    bool first = mine >= 0;
    for (int n = 0; n < me && first; ++n) first = cells[n] != mine;
    if (first) {
      T sum = p.next[mine];
      for (int n = me; n < threads; ++n)
        if (cells[n] == mine) sum = multiply_add(p.speed[mine], p.amplitude[begin + n], sum);
      p.next[mine] = sum;
    }
    __syncthreads();
  }
}

/// Records the wave field at the slab's receivers, which are divided among the threads of all blocks.
template <class T>
__device__ void record(const wave_step<T>& p) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.recorded_count; i += threads) {
    const point at = p.recorded[i];
    p.record[i] = p.now[p.layout.index(at.x, at.y, at.z)];
  }
}

/// Sets the cells at and above z = 0 in the tile's rows, so that the field is odd about z = 0.
template <class T>
__device__ void mirror(const wave_step<T>& p, const tile& t) {
  const auto rows = static_cast<int>(t.y1 - t.y0), all = static_cast<int>(t.x1 - t.x0) * rows;
  for (int n = static_cast<int>(threadIdx.x); n < all; n += static_cast<int>(blockDim.x)) {
    T* const row = p.next + p.layout.index(t.x0 + n / rows, t.y0 + n % rows, 0);
    row[0] = 0;
    for (int64_t k = 1; k <= p.layout.radius; ++k) row[-k] = -row[k];
  }
}

template <class T, int64_t order>
__device__ void run(const wave_step_of<T, order>& p) {
  const tile t = my_tile(p.part, p.across);
  step_tile<static_cast<int>(order / 2)>(static_cast<const wave_step<T>&>(p), t);
  record(p);
  if (p.injected_count > 0) {
    __syncthreads();
    inject(p, t);
  }
  if (p.free_surface && t.z0 == 0) {
    __syncthreads();
    mirror(p, t);
  }
}

/// Calls row(number of the packed row, index of the row in the field) for every row of the window that is in the slab.
/// A warp processes one row at a time, and all its lanes make the call.
template <class Parameters, class Row>
__device__ void for_rows(const Parameters& p, Row row) {
  constexpr int lanes = 32;
  const window& w = p.cells;
  const int64_t x0 = max(p.part.x0, w.x), rows = (min(p.part.x1, w.x + w.nx) - x0) * w.ny;
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / lanes;
  for (int64_t r = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes; r < rows; r += warps) {
    const int64_t x = x0 + r / w.ny, y = r % w.ny;
    row((x - w.x) * w.ny + y, p.layout.index(x, w.y + y, w.z));
  }
}

/// Calls cell(index in the packed cells, index in the field) for every cell of the window that is in the slab.
template <class Parameters, class Cell>
__device__ void for_cells(const Parameters& p, Cell cell) {
  constexpr int lanes = 32;
  const int64_t nz = p.cells.nz;
  for_rows(p, [&](int64_t row, int64_t field) {
    for (int64_t i = threadIdx.x % lanes; i < nz; i += lanes) cell(row * nz + i, field + i);
  });
}

template <class T>
__device__ void run(const keep<T>& p) {
  for_cells(p, [&](int64_t packed, int64_t cell) { p.kept[packed] = p.field[cell]; });
}

template <class T>
__device__ void run(const correlate<T>& p) {
  for_cells(p, [&](int64_t packed, int64_t cell) {
    const T kept = p.kept[packed];
    p.image[packed] = multiply_add(kept, p.field[cell], p.image[packed]);
    p.illumination[packed] = multiply_add(kept, kept, p.illumination[packed]);
  });
}

}  // namespace
}  // namespace hpe::kernels::cuda
