// The scan of a program's own operator, for GPUs.

#include "kernels/cuda/scan.cuh"
#include "kernels/cuda/scan_hopper.cuh"
#include "tests/scan/affine.h"

HPE_CUDA_SCAN(affine, affine, compose)
HPE_CUDA_SCAN_SINGLE_PASS(affine, affine, compose)
