// Kernels that copy rows and scattered bytes. A copy engine transfers each row separately, which is slow for short
// rows. In these kernels, neighbouring threads copy neighbouring units.

#include "interpose/gpu/calls/byte_places.h"

namespace hpe::cuda_hooks {

namespace {

// Computes the addresses of units. Caches the run that contains the last unit, because the next unit is usually in
// the same run.
class places {
 public:
  __device__ explicit places(const byte_places& side) : side_(side) {}

  __device__ unsigned long long of(unsigned unit, unsigned unit_bytes) {
    const unsigned row = unit / side_.width;
    const unsigned long long column = static_cast<unsigned long long>(unit - row * side_.width) * unit_bytes;
    const unsigned plane = row / side_.rows;
    const unsigned long long begin = side_.base + plane * side_.plane + (row - plane * side_.rows) * side_.row;
    if (side_.runs == nullptr) return begin + column;
    if (column < first_ || column >= end_) find(column);
    return begin + offset_ + (column - first_);
  }

 private:
  __device__ void find(unsigned long long column) {
    unsigned low = 0;
    unsigned high = side_.run_count;
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      if (side_.runs[middle].first <= column) {
        low = middle;
      } else {
        high = middle;
      }
    }
    first_ = side_.runs[low].first;
    end_ = side_.runs[low + 1].first;
    offset_ = side_.runs[low].offset;
  }

  const byte_places& side_;
  unsigned long long first_ = 0;  // the first data byte of the cached run, counted within the element
  unsigned long long end_ = 0;
  long long offset_ = 0;
};

template <class Unit>
__device__ void copy(const unit_copy& what) {
  places to_places(what.to);
  places from_places(what.from);
  const unsigned tile = blockDim.x * what.in_a_thread;
  for (unsigned begin = blockIdx.x * tile; begin < what.units; begin += gridDim.x * tile)
    for (unsigned n = 0; n < what.in_a_thread; ++n) {
      const unsigned i = begin + n * blockDim.x + threadIdx.x;
      if (i >= what.units) break;
      *reinterpret_cast<Unit*>(to_places.of(i, sizeof(Unit))) =
          *reinterpret_cast<const Unit*>(from_places.of(i, sizeof(Unit)));
    }
}

}  // namespace

// The kernel for units of 1 << n bytes.
#define HPE_COPY_KERNEL(n, type)                                                                                 \
  extern "C" __global__ void __launch_bounds__(256) hpe_copy_units_##n(const __grid_constant__ unit_copy what) { \
    copy<type>(what);                                                                                            \
  }
HPE_COPY_KERNEL(0, unsigned char)
HPE_COPY_KERNEL(1, unsigned short)
HPE_COPY_KERNEL(2, unsigned)
HPE_COPY_KERNEL(3, unsigned long long)
HPE_COPY_KERNEL(4, uint4)

// The thread blocks of row y of the grid make copy y.
extern "C" __global__ void __launch_bounds__(256) hpe_copy_several(const __grid_constant__ unit_copies all) {
  const unit_copy& what = all.each[blockIdx.y];
  switch (what.unit_log) {
    case 0: return copy<unsigned char>(what);
    case 1: return copy<unsigned short>(what);
    case 2: return copy<unsigned>(what);
    case 3: return copy<unsigned long long>(what);
    default: return copy<uint4>(what);
  }
}

}  // namespace hpe::cuda_hooks
