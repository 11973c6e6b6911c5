#pragma once

/// The body for GPUs of the kernel of kernels/copy_boxes.h. All threads of the launch share the cells of each box.

#include "kernels/copy_boxes.h"

namespace hpe::kernels::cuda {
namespace {

template <class T>
__device__ void run(const copy_boxes<T>& p) {
  const uint32_t threads = gridDim.x * blockDim.x;
  T* packed = p.packed;
  for (int64_t b = 0; b < p.count; ++b) {
    const window& box = p.boxes[b];
    const auto nz = static_cast<uint32_t>(box.nz), ny = static_cast<uint32_t>(box.ny);
    const auto cells = static_cast<uint32_t>(box.nx * box.ny * box.nz);
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < cells; i += threads) {
      const uint32_t row = i / nz;
      T* const cell = p.field + p.layout.index(box.x + row / ny, box.y + row % ny, box.z + i % nz);
      if (p.restore)
        *cell = packed[i];
      else
        packed[i] = *cell;
    }
    packed += cells;
  }
}

}  // namespace
}  // namespace hpe::kernels::cuda
