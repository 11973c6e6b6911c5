// All kernels for GPUs.

#include "kernels/cuda/absorb.cuh"
#include "kernels/cuda/boxes.cuh"
#include "kernels/cuda/compression.cuh"
#include "kernels/cuda/fdtd.cuh"
#include "kernels/cuda/wave.cuh"

#define HPE_KERNEL(name, ...)                                                                           \
  extern "C" __global__ void __launch_bounds__(hpe::kernels::march_threads, hpe::kernels::march_blocks) \
      name(const __grid_constant__ __VA_ARGS__ p) {                                                     \
    hpe::kernels::cuda::run(p);                                                                         \
  }
#include "kernels/kernels.def"
