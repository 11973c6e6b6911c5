#pragma once

/// A time step of a wave equation in three dimensions as a march along x: a block of threads owns a tile of y and z and
/// moves through its planes. A thread keeps the neighbours of its points along x in registers, and reads their
/// neighbours in the plane from shared memory. Asynchronous copies fetch planes ahead of their use, so that enough
/// loads are in flight for the full bandwidth of the memory.
///
/// The method is that of P. Micikevicius, "3D finite difference computation on GPUs using CUDA" (GPGPU-2, 2009), with
/// four points per thread.

#include "kernels/cuda/wave_arithmetic.cuh"

namespace hpe::kernels::cuda {

/// Four neighbouring cells along z.
struct alignas(16) quad {
  float v[4];
};

__device__ inline quad load_quad(const float* p) {
  const float4 q = __ldg(reinterpret_cast<const float4*>(p));
  return {{q.x, q.y, q.z, q.w}};
}
// Stores data that is not needed soon, in a way that evicts less data from the caches.
__device__ inline void store_once(float* p, const quad& q) {
  __stcs(reinterpret_cast<float4*>(p), make_float4(q.v[0], q.v[1], q.v[2], q.v[3]));
}
// Starts a copy to shared memory. If `there` is false, zeros are written instead.
__device__ inline void copy_async(quad* to, const float* from, bool there) {
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int later>
__device__ void await_all_groups_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
}

/// The cells that a march computes: planes [x0, x1), rows below y1, and cells below z1 of each row. This block computes
/// the cells of the tile that begins at (tile_y0, tile_z0). tile_z0 must be a multiple of 4. If z1 is not a multiple of
/// 4, the march also writes up to three cells after z1. The march also reads the cells up to `radius` beyond the range
/// in all directions, along z in whole quads.
struct march_range {
  int64_t x0, x1, y1, z1;
  int64_t tile_y0, tile_z0;
};

/// The position of a thread in its tile, and the quads of a plane's rim that the thread loads: rows before and after
/// the tile, and quads before and after each row of the tile.
template <int radius, int tile_z, int tile_y>
struct place {
  static constexpr int lanes = tile_z / 4;
  static constexpr int threads = lanes * tile_y;
  static constexpr int beside = (radius + 3) / 4;      // number of quads on each side of a row
  static constexpr int width = lanes + 2 * beside;     // quads in a row of a plane in shared memory
  static constexpr int rim_rows = 2 * radius * lanes;  // number of quads in the rows before and after the tile
  static constexpr int rim = rim_rows + 2 * beside * tile_y;
  static constexpr int rim_each = (rim + threads - 1) / threads;

  int lane, row;
  int64_t y, z;
  bool reads, writes;          // whether the thread reads its cells, and whether it computes them
  int64_t column;              // index of the thread's first cell in plane 0
  int64_t rim_from[rim_each];  // for each rim quad that the thread loads, its index in plane 0; below 0: zeros
  int rim_to[rim_each];        // for each of these quads, its index in the plane in shared memory; below 0: no load

  template <class Layout>
  __device__ place(const Layout& layout, const march_range& range) {
    const auto me = static_cast<int>(threadIdx.x);
    lane = me % lanes;
    row = me / lanes;
    y = range.tile_y0 + row;
    z = range.tile_z0 + 4 * lane;
    // A thread reads only cells that some cell of the range needs, and no cells beyond the end of a row.
    const auto readable = [&](int64_t y, int64_t z) {
      return y < range.y1 + radius && z < range.z1 + 4 * beside && z < layout.row - layout.lead;
    };
    reads = readable(y, z);
    writes = y < range.y1 && z < range.z1;
    column = reads ? layout.index(0, y, z) : layout.index(0, 0, 0);
#pragma unroll
    for (int i = 0; i < rim_each; ++i) {
      const int n = me + i * threads, side = n - rim_rows;
      int r = n / lanes, c = n % lanes + beside;
      if (side >= 0) {
        r = side / (2 * beside) + radius;
        c = side % (2 * beside);
        if (c >= beside) c += lanes;
      } else if (r >= radius) {
        r += tile_y;
      }
      const int64_t rim_y = range.tile_y0 + r - radius, rim_z = range.tile_z0 + 4 * (c - beside);
      rim_to[i] = n < rim ? r * width + c : -1;
      rim_from[i] = n < rim && readable(rim_y, rim_z) ? layout.index(0, rim_y, rim_z) : -1;
    }
  }
};

/// The shared memory of a march. Each thread loads, and itself reads, a quad of the old values of `next` (`before`), a
/// quad of `speed`, and a quad of `now` that is `radius` planes ahead (`ahead`). `planes` holds whole planes of `now`
/// with their rims; all threads read them.
template <int radius, int tile_z, int tile_y, int depth>
struct march_memory {
  using my = place<radius, tile_z, tile_y>;
  quad before[depth][my::threads], speed[depth][my::threads], ahead[depth][my::threads];
  quad planes[depth + 1][tile_y + 2 * radius][my::width];
};

/// Computes `next` in the range from now, next, speed and the laplacian of now. A block of tile_z / 4 * tile_y threads
/// must call it, and loads data `depth` planes ahead. p must have the members now, next, speed, layout, centre and
/// weights[3], like the parameters of the steps. The function calls point.start(whether the thread computes cells, y,
/// z, the thread's first plane) once and point.plane(x) before each plane. point.step(i, here, before, speed,
/// laplacian) must return cell i of the thread's quad.
template <int radius, int tile_z, int tile_y, int depth, class Parameters, class Point>
__device__ void march(march_memory<radius, tile_z, tile_y, depth>& memory, const Parameters& p,
                      const march_range& range, Point point) {
  using my = place<radius, tile_z, tile_y>;
  auto& before = memory.before;
  auto& speed = memory.speed;
  auto& ahead = memory.ahead;
  auto& planes = memory.planes;

  const my at(p.layout, range);
  const int me = static_cast<int>(threadIdx.x);
  const int64_t stride = p.layout.plane, x0 = range.x0, x1 = range.x1;
  const auto fetch = [&](int64_t x, int slot, int plane_slot) {
    if (x < x1) {
      copy_async(&ahead[slot][me], p.now + at.column + (x + radius) * stride, at.reads);
      copy_async(&before[slot][me], p.next + at.column + x * stride, at.writes);
      copy_async(&speed[slot][me], p.speed + at.column + x * stride, at.writes);
#pragma unroll
      for (int i = 0; i < my::rim_each; ++i)
        if (at.rim_to[i] >= 0)
          copy_async(&planes[plane_slot][0][0] + at.rim_to[i],
                     p.now + (at.rim_from[i] >= 0 ? at.rim_from[i] + x * stride : 0), at.rim_from[i] >= 0);
    }
    end_group();
  };

  point.start(at.writes, at.y, at.z, x0);
  quad column[2 * radius + 1];  // planes x - radius to x + radius of the thread's quad
#pragma unroll
  for (int k = 0; k < 2 * radius; ++k)
    column[k] = at.reads ? load_quad(p.now + at.column + (x0 + k - radius) * stride) : quad{};
#pragma unroll
  for (int k = 0; k < depth; ++k) fetch(x0 + k, k, k);

  int slot = 0, plane_slot = 0;
  for (int64_t x = x0; x < x1; ++x) {
    await_all_groups_but<depth - 1>();
    auto& plane = planes[plane_slot];
    const quad& here = column[radius];
    column[2 * radius] = ahead[slot][me];
    const quad old = before[slot][me], c2 = speed[slot][me];
    plane[at.row + radius][at.lane + my::beside] = here;
    // After this barrier, the plane is complete, and no thread reads the previous plane, which the next load
    // overwrites.
    __syncthreads();
    fetch(x + depth, slot, plane_slot == 0 ? depth : plane_slot - 1);

    if (at.writes) {
      point.plane(x);
      float line[4 * (2 * my::beside + 1)];
#pragma unroll
      for (int q = 0; q < 2 * my::beside + 1; ++q) {
        const quad part = q == my::beside ? here : plane[at.row + radius][at.lane + q];
#pragma unroll
        for (int i = 0; i < 4; ++i) line[4 * q + i] = part.v[i];
      }
      const auto& w = p.weights;
      quad along_zx, along_y;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto pair_z = [&](int k) { return add(line[4 * my::beside + i - k], line[4 * my::beside + i + k]); };
        const auto pair_x = [&](int k) { return add(column[radius - k].v[i], column[radius + k].v[i]); };
        float along_z = multiply_add(w[2][0], pair_z(1), multiply(p.centre, here.v[i]));
        float along_x = multiply(w[0][0], pair_x(1));
#pragma unroll
        for (int k = 2; k <= radius; ++k) {
          along_z = multiply_add(w[2][k - 1], pair_z(k), along_z);
          along_x = multiply_add(w[0][k - 1], pair_x(k), along_x);
        }
        along_zx.v[i] = add(along_z, along_x);
      }
#pragma unroll
      for (int k = 1; k <= radius; ++k) {
        const quad above = plane[at.row + radius - k][at.lane + my::beside];
        const quad below = plane[at.row + radius + k][at.lane + my::beside];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float pair = add(above.v[i], below.v[i]);
          along_y.v[i] = k == 1 ? multiply(w[1][0], pair) : multiply_add(w[1][k - 1], pair, along_y.v[i]);
        }
      }
      quad result;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        result.v[i] = point.step(i, here.v[i], old.v[i], c2.v[i], add(along_zx.v[i], along_y.v[i]));
      store_once(p.next + at.column + x * stride, result);
    }
#pragma unroll
    for (int k = 0; k < 2 * radius; ++k) column[k] = column[k + 1];
    slot = slot + 1 == depth ? 0 : slot + 1;
    plane_slot = plane_slot == depth ? 0 : plane_slot + 1;
  }
  await_all_groups_but<0>();
  __syncthreads();
}

}  // namespace hpe::kernels::cuda
