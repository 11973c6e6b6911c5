// The merges of a program's own element and order, for GPUs.

#include "kernels/cuda/merge.cuh"
#include "tests/sort/descending.h"

HPE_CUDA_MERGE(measured, measured, by_size_descending)
