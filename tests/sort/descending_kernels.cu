// The merge kernels for a program's own element type and order, on GPUs.

#include "kernels/cuda/merge.cuh"
#include "tests/sort/descending.h"

HPE_CUDA_MERGE(measured, measured, by_size_descending)
