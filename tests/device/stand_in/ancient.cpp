// A CUDA driver from before virtual memory management: it starts, but lacks the functions that hpe needs.
#include <cuda.h>

CUresult cuInit(unsigned /*flags*/) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = 9020;
  return CUDA_SUCCESS;
}
