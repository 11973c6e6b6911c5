// The kernels of the scans of scan.def in one pass.

#include "kernels/cuda/scan_hopper.cuh"
#include "kernels/scan_operators.h"

#define HPE_SCAN(type, T, operator_name, Op) HPE_CUDA_SCAN_SINGLE_PASS(type##_##operator_name, T, hpe::kernels::Op<T>)
#include "kernels/scan.def"
#undef HPE_SCAN
