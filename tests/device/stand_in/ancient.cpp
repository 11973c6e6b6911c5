// A CUDA driver from before there was virtual memory management: it starts, and has nothing that hpe builds on.
#include <cuda.h>

CUresult cuInit(unsigned /*flags*/) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 9020;
  return CUDA_SUCCESS;
}
