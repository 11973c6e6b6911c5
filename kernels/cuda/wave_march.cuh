#pragma once

/// The wave step in three dimensions as a march along x: a block of threads owns a tile of y and z and walks through its
/// planes. What a point needs of its column along x stays in registers of its thread; what it needs of its plane lies in
/// shared memory. Planes are fetched by asynchronous copies a few planes ahead, so that enough loads are in flight to fill
/// the memory's bandwidth.
///
/// P. Micikevicius, "3D finite difference computation on GPUs using CUDA" (GPGPU-2, 2009), here with four points a thread.

#include "kernels/cuda/wave_arithmetic.cuh"
#include "kernels/wave.h"

namespace hpe::kernels::cuda {

/// Four neighbours along z.
struct alignas(16) quad {
  float v[4];
};

__device__ inline quad load_quad(const float* p) {
  const float4 q = __ldg(reinterpret_cast<const float4*>(p));
  return {{q.x, q.y, q.z, q.w}};
}
// For what nobody needs again soon: it displaces less from the caches.
__device__ inline void store_once(float* p, const quad& q) {
  __stcs(reinterpret_cast<float4*>(p), make_float4(q.v[0], q.v[1], q.v[2], q.v[3]));
}
// Starts a copy to shared memory; zeros if there is nothing.
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

/// Where a thread stands in its tile, and what it fetches of the rim of a plane: the rows before and after the tile, a quad
/// before and after each of its rows.
template <int tile_z, int tile_y>
struct place {
  static constexpr int radius = stencil_radius;
  static constexpr int lanes = tile_z / 4;
  static constexpr int threads = lanes * tile_y;
  static constexpr int width = lanes + 2;  // of a plane in shared memory
  static constexpr int rim = 2 * radius * lanes + 2 * tile_y;
  static constexpr int rim_each = (rim + threads - 1) / threads;

  int lane, row;
  int64_t y, z;
  bool reads, writes;          // there is memory at its cells; they are cells of the grid
  int64_t column;              // index of its first cell in plane 0
  int64_t rim_from[rim_each];  // likewise; < 0: zeros
  int rim_to[rim_each];        // in the plane in shared memory; < 0: nothing

  __device__ place(const field_layout& layout, int64_t y0, int64_t z0) {
    const auto me = static_cast<int>(threadIdx.x);
    lane = me % lanes;
    row = me / lanes;
    y = y0 + row;
    z = z0 + 4 * lane;
    // A row holds zeros from its last cell to its end, and so do the rows behind the last one.
    const auto readable = [&](int64_t y, int64_t z) {
      return y < layout.ny + radius && z < layout.row - layout.lead;
    };
    reads = readable(y, z);
    writes = y < layout.ny && z < (layout.nz + row_multiple - 1) / row_multiple * row_multiple;
    column = reads ? layout.index(0, y, z) : layout.index(0, 0, 0);
#pragma unroll
    for (int i = 0; i < rim_each; ++i) {
      const int n = me + i * threads, beside = n - 2 * radius * lanes;
      const int r = beside >= 0 ? beside / 2 + radius : n / lanes + (n / lanes < radius ? 0 : tile_y);
      const int c = beside >= 0 ? beside % 2 * (lanes + 1) : n % lanes + 1;
      const int64_t rim_y = y0 + r - radius, rim_z = z0 + 4 * (c - 1);
      rim_to[i] = n < rim ? r * width + c : -1;
      rim_from[i] = n < rim && readable(rim_y, rim_z) ? layout.index(0, rim_y, rim_z) : -1;
    }
  }
};

/// Planes [x0, x1) of the tile of tile_z cells (a multiple of 4) by tile_y rows at (y0, z0), by a block of
/// tile_z / 4 * tile_y threads that fetch `depth` planes ahead. z0 is a multiple of 4; the tile may reach over the ends of
/// rows and planes.
template <int tile_z, int tile_y, int depth>
__device__ void march(const wave_step<float>& p, int64_t x0, int64_t x1, int64_t y0, int64_t z0) {
  using my = place<tile_z, tile_y>;
  constexpr int radius = stencil_radius;
  // What was fetched: for the plane itself, four planes ahead, and the rims of the planes; the thread that fetched a quad
  // reads it, except for rims.
  __shared__ quad before[depth][my::threads], speed[depth][my::threads], ahead[depth][my::threads];
  __shared__ quad planes[depth + 1][tile_y + 2 * radius][my::width];

  const my at(p.layout, y0, z0);
  const int me = static_cast<int>(threadIdx.x);
  const int64_t stride = p.layout.plane;
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

  const float taper_y = at.writes ? p.taper_y[at.y] : 0;
  const quad taper_z = at.writes ? load_quad(p.taper_z + at.z) : quad{};
  quad column[2 * radius + 1];  // planes x - 4 to x + 4
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
    plane[at.row + radius][at.lane + 1] = here;
    // The plane is complete, and nobody reads the one before it any more, whose place is filled next.
    __syncthreads();
    fetch(x + depth, slot, plane_slot == 0 ? depth : plane_slot - 1);

    if (at.writes) {
      const float twice = 2 * multiply(p.taper_x[x], taper_y);
      const quad left = plane[at.row + radius][at.lane], right = plane[at.row + radius][at.lane + 2];
      float line[12];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        line[i] = left.v[i];
        line[i + 4] = here.v[i];
        line[i + 8] = right.v[i];
      }
      quad along_zx, along_y;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&w)[3][stencil_radius] = p.weights;
        const auto pair_z = [&](int k) { return add(line[i + 4 - k], line[i + 4 + k]); };
        const auto pair_x = [&](int k) { return add(column[radius - k].v[i], column[radius + k].v[i]); };
        const float z1 = multiply_add(w[2][0], pair_z(1), multiply(p.centre, here.v[i]));
        const float along_z = axis(w[2], z1, pair_z(2), pair_z(3), pair_z(4));
        const float along_x = axis(w[0], multiply(w[0][0], pair_x(1)), pair_x(2), pair_x(3), pair_x(4));
        along_zx.v[i] = add(along_z, along_x);
      }
#pragma unroll
      for (int k = 1; k <= radius; ++k) {
        const quad above = plane[at.row + radius - k][at.lane + 1], below = plane[at.row + radius + k][at.lane + 1];
        const float w = p.weights[1][k - 1];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float pair = add(above.v[i], below.v[i]);
          along_y.v[i] = k == 1 ? multiply(w, pair) : multiply_add(w, pair, along_y.v[i]);
        }
      }
      quad result;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        result.v[i] =
            stepped(here.v[i], old.v[i], c2.v[i], add(along_zx.v[i], along_y.v[i]), twice, taper_z.v[i]);
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
