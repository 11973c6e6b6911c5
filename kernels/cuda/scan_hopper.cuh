#pragma once

/// HPE_CUDA_SCAN_SINGLE_PASS(suffix, T, Op) defines the kernel of a single-pass scan for one type and operator:
/// scan_single_pass_SUFFIX. To scan with an operator of its own, a program includes this header in a .cu file of its
/// module. When compiled for GPUs before Hopper, the macro defines nothing, and hpe scans in three stages.

#include "kernels/cuda/scan_single_pass.cuh"

namespace hpe::kernels::gpu {

using hopper_shape = single_pass_shape<7, single_pass_tile_bytes, 16, 8>;
static_assert(hopper_shape::threads == single_pass_threads, "programs launch blocks of single_pass_threads");

template <class T, class Op>
__device__ __forceinline__ void scan_in_one_pass(const scan_single_pass<T>& p, char* shared) {
  static_assert(sizeof(single_pass_memory<T, hopper_shape>) <= 227 * 1024, "a block has 227 KiB of shared memory");
  auto& memory = *reinterpret_cast<single_pass_memory<T, hopper_shape>*>(shared);
  if (p.tiling.several_problems())
    single_pass<T, Op, hopper_shape, true>(p, {}, memory).run();
  else
    single_pass<T, Op, hopper_shape, false>(p, {}, memory).run();
}

}  // namespace hpe::kernels::gpu

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define HPE_CUDA_SCAN_SINGLE_PASS(suffix, T, Op)                                                                \
  extern "C" __constant__ unsigned scan_single_pass_##suffix##_shared_bytes =                                   \
      sizeof(hpe::kernels::gpu::single_pass_memory<T, hpe::kernels::gpu::hopper_shape>);                        \
  extern "C" __global__ __launch_bounds__(hpe::kernels::single_pass_threads, 1) void scan_single_pass_##suffix( \
      const __grid_constant__ hpe::kernels::scan_single_pass<T> p) {                                            \
    extern __shared__ __align__(128) char shared[];                                                             \
    hpe::kernels::gpu::scan_in_one_pass<T, Op>(p, shared);                                                      \
  }
#else
#define HPE_CUDA_SCAN_SINGLE_PASS(suffix, T, Op)
#endif
