// Defines every function of the CUDA driver that hpe uses; each definition returns an error. The definitions are weak,
// so that the driver of a test can define the functions that it needs.
#include <cuda.h>

extern "C" int stand_in_refuses() { return CUDA_ERROR_NOT_SUPPORTED; }

#define NAME(name) #name
#define NAME_OF(name) NAME(name)
#define HPE_CUDA_REQUIRED(name) __asm__(".weak " NAME_OF(name) "\n.set " NAME_OF(name) ", stand_in_refuses\n");
#define HPE_CUDA_OPTIONAL(name)
#include "runtime/device/cuda/symbols.def"
