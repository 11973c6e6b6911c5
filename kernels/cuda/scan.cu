// Three-stage kernels, for all GPUs, of the scans that scan.def lists.

#include "kernels/cuda/scan.cuh"
#include "kernels/scan_operators.h"

#define HPE_SCAN(type, T, operator_name, Op) HPE_CUDA_SCAN(type##_##operator_name, T, hpe::kernels::Op<T>)
#include "kernels/scan.def"
#undef HPE_SCAN

extern "C" __global__ void scan_fence(const hpe::kernels::scan_fence_parameters /*unused*/) {}
