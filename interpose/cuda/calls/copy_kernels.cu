// Copies of rows. A copy engine makes a transfer for each row; in these kernels, neighbouring threads copy neighbouring
// units.

#include "interpose/cuda/calls/byte_places.h"

namespace hpe::cuda_hooks {

namespace {

__device__ unsigned long long place_of(const byte_places& side, unsigned unit, unsigned unit_bytes) {
  const unsigned row = unit / side.width;
  const unsigned plane = row / side.rows;
  return side.base + plane * side.plane + (row - plane * side.rows) * side.row +
         static_cast<unsigned long long>(unit - row * side.width) * unit_bytes;
}

template <class Unit>
__device__ void copy(const byte_places& to, const byte_places& from, unsigned units, unsigned in_a_thread) {
  const unsigned tile = blockDim.x * in_a_thread;
  for (unsigned begin = blockIdx.x * tile; begin < units; begin += gridDim.x * tile)
    for (unsigned n = 0; n < in_a_thread; ++n) {
      const unsigned i = begin + n * blockDim.x + threadIdx.x;
      if (i >= units) break;
      *reinterpret_cast<Unit*>(place_of(to, i, sizeof(Unit))) =
          *reinterpret_cast<const Unit*>(place_of(from, i, sizeof(Unit)));
    }
}

}  // namespace

// For units of 1 << n bytes at aligned addresses. A copy has fewer than 2^31 units.
#define HPE_COPY_KERNEL(n, type)                                                                               \
  extern "C" __global__ void __launch_bounds__(256)                                                            \
      hpe_copy_units_##n(const byte_places to, const byte_places from, unsigned units, unsigned in_a_thread) { \
    copy<type>(to, from, units, in_a_thread);                                                                  \
  }
HPE_COPY_KERNEL(0, unsigned char)
HPE_COPY_KERNEL(1, unsigned short)
HPE_COPY_KERNEL(2, unsigned)
HPE_COPY_KERNEL(3, unsigned long long)
HPE_COPY_KERNEL(4, uint4)

}  // namespace hpe::cuda_hooks
