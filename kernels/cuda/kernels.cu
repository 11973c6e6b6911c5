// The kernels of libhpe-kernels.so for GPUs.

#include "kernels/cuda/absorb.cuh"
#include "kernels/cuda/boxes.cuh"
#include "kernels/cuda/compression.cuh"
#include "kernels/cuda/fdtd.cuh"
#include "kernels/cuda/wave.cuh"

namespace hpe::kernels::cuda {
namespace {

/// The number of blocks that run on a multiprocessor at a time; the compiler limits the registers of a thread
/// accordingly.
template <class Parameters>
inline constexpr int blocks_at_once = march_blocks;
/// Three blocks hide the latency of memory better than two, without spilled registers.
template <>
inline constexpr int blocks_at_once<absorb<float>> = 3;

}  // namespace
}  // namespace hpe::kernels::cuda

#define HPE_KERNEL(name, ...)                                                                   \
  extern "C" __global__ void __launch_bounds__(hpe::kernels::march_threads,                     \
                                               hpe::kernels::cuda::blocks_at_once<__VA_ARGS__>) \
      name(const __grid_constant__ __VA_ARGS__ p) {                                             \
    hpe::kernels::cuda::run(p);                                                                 \
  }
#include "kernels/kernels.def"
