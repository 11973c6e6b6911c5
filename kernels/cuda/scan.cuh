#pragma once

/// HPE_CUDA_SCAN(suffix, T, Op) defines the three kernels of a scan in stages for one type and operator:
/// scan_reduce_SUFFIX, scan_sums_SUFFIX and scan_chunks_SUFFIX. To scan with an operator of its own, a program includes
/// this header in a .cu file of its module (hpe_cuda_kernels).

#include "kernels/cuda/scan_three_stage.cuh"

#define HPE_CUDA_SCAN_STAGE(name, T, Op, stage)                                                   \
  extern "C" __global__ void name(const __grid_constant__ hpe::kernels::scan_three_stages<T> p) { \
    __shared__ hpe::kernels::gpu::block_memory<T> shared;                                         \
    hpe::kernels::gpu::three_stage<T, Op>(p, {}, shared).stage();                                 \
  }
#define HPE_CUDA_SCAN(suffix, T, Op)                       \
  HPE_CUDA_SCAN_STAGE(scan_reduce_##suffix, T, Op, reduce) \
  HPE_CUDA_SCAN_STAGE(scan_sums_##suffix, T, Op, sums)     \
  HPE_CUDA_SCAN_STAGE(scan_chunks_##suffix, T, Op, chunks)
