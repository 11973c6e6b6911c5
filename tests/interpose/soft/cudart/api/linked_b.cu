#include "kernels.h"

__device__ int linked_variable = 40;
__device__ int linked_function(int value) { return value * 1000; }

const void* symbol_linked() { return &linked_variable; }
