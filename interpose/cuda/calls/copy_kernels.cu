// Copies of bytes that are not in a row, of which a copy engine makes a transfer for each row. Neighbouring threads copy
// neighbouring units, so that bytes that lie together go together.

#include "interpose/cuda/calls/byte_places.h"

namespace hpe::cuda_hooks {

namespace {

__device__ unsigned long long place_of(const byte_places& side, unsigned unit, unsigned unit_bytes) {
  const unsigned row = unit / side.width;
  const unsigned long long column = static_cast<unsigned long long>(unit - row * side.width) * unit_bytes;
  const unsigned plane = row / side.rows;
  const unsigned long long begin = side.base + plane * side.plane + (row - plane * side.rows) * side.row;
  if (side.pieces == nullptr) return begin + column;
  unsigned low = 0;
  unsigned high = side.piece_count;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    if (side.pieces[middle].first <= column) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return begin + side.pieces[low].offset + (column - side.pieces[low].first);
}

template <class Unit>
__device__ void copy(const byte_places& to, const byte_places& from, unsigned units) {
  const unsigned threads = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < units; i += threads)
    *reinterpret_cast<Unit*>(place_of(to, i, sizeof(Unit))) =
        *reinterpret_cast<const Unit*>(place_of(from, i, sizeof(Unit)));
}

}  // namespace

// For units of 1 << n bytes, at addresses that are multiples of that. There are fewer than 2^31.
#define HPE_COPY_KERNEL(n, type)                                                                                \
  extern "C" __global__ void __launch_bounds__(256)                                                             \
      hpe_copy_units_##n(const byte_places to, const byte_places from, unsigned units) {                        \
    copy<type>(to, from, units);                                                                                \
  }
HPE_COPY_KERNEL(0, unsigned char)
HPE_COPY_KERNEL(1, unsigned short)
HPE_COPY_KERNEL(2, unsigned)
HPE_COPY_KERNEL(3, unsigned long long)
HPE_COPY_KERNEL(4, uint4)

}  // namespace hpe::cuda_hooks
