#pragma once

/// The grid of the listings and its time step: the wave equation with a stencil of order
/// 8, as in the kernels of the thesis. The host, soft devices and GPUs compute the same
/// bits, because the code calls fma for each fused operation.

#include <math.h>
#include <stddef.h>
#include <stdint.h>

namespace hpe::bench::listings {

inline constexpr int steps = 20;
inline constexpr size_t side =
    32;  ///< cells along each axis of a plane; both axes are periodic
inline constexpr size_t plane = side * side;  ///< cells of a plane; 4 KiB
inline constexpr size_t halo = 4 * plane;     ///< cells that the stencil reads from the
                                           ///< neighbouring slab; a rim has the same size
inline constexpr size_t slab = 32 * plane;        ///< cells of each device's slab
inline constexpr size_t inner = slab - 2 * halo;  ///< cells of a slab between its rims

/// The offsets, in cells, of the regions of a device's field: left halo, left rim, inner
/// cells, right rim and right halo. The slab lies between the two halos.
inline constexpr size_t left_halo = 0;
inline constexpr size_t left_rim = halo;
inline constexpr size_t between = 2 * halo;
inline constexpr size_t right_rim = slab;
inline constexpr size_t right_halo = halo + slab;

/// The parameters of the kernel listings_step.
struct stencil {
  const float* in;  ///< the field at the current step
  float* out;       ///< previous field; becomes the next field
  uint64_t cells;   ///< the number of cells to compute: whole planes
};

#ifdef __CUDACC__
#define HPE_LISTINGS_BOTH __host__ __device__
#else
#define HPE_LISTINGS_BOTH
#endif

/// Returns the value of a cell at the next step.
HPE_LISTINGS_BOTH inline float stepped(const stencil& s, uint64_t cell) {
  const float weights[] = {-1.0F / 560, 8.0F / 315, -0.2F,
                           1.6F};  // the weights of the cells at the distances 4, 3, 2, 1
  const uint64_t z = cell % side, y = cell / side % side, first = cell - y * side - z;
  float sum = s.in[cell] * (-3 * 205.0F / 72);
  for (int i = 0; i < 4; ++i) {
    const uint64_t r = 4 - i;
    const uint64_t row = first + y * side;
    sum = fmaf(weights[i], s.in[cell - r * plane] + s.in[cell + r * plane], sum);
    sum = fmaf(weights[i],
               s.in[first + (y + side - r) % side * side + z] +
                   s.in[first + (y + r) % side * side + z],
               sum);
    sum = fmaf(weights[i], s.in[row + (z + side - r) % side] + s.in[row + (z + r) % side],
               sum);
  }
  return fmaf(0.1F, sum, fmaf(2, s.in[cell], -s.out[cell]));
}

}  // namespace hpe::bench::listings
