// Checks at compile time that the declarations in apps/fft/cufft.h agree with the toolkit's header.

#include <cufft.h>

#include <type_traits>

#include "apps/fft/cufft.h"

namespace cufft = hpe::fft::cufft;

static_assert(sizeof(cufftHandle) == sizeof(cufft::handle) && std::is_same_v<cufftHandle, cufft::handle>);
static_assert(sizeof(cufftResult) == sizeof(cufft::status) && CUFFT_SUCCESS == 0);
static_assert(cufft::c2c == CUFFT_C2C && cufft::z2z == CUFFT_Z2Z && CUFFT_FORWARD == -1 && CUFFT_INVERSE == 1);

static_assert(std::is_same_v<decltype(cufftCreate), cufftResult(cufftHandle*)>);
static_assert(std::is_same_v<decltype(cufftDestroy), cufftResult(cufftHandle)>);
static_assert(std::is_same_v<decltype(cufftSetAutoAllocation), cufftResult(cufftHandle, int)>);
static_assert(std::is_same_v<decltype(cufftMakePlanMany64),
                             cufftResult(cufftHandle, int, long long*, long long*, long long, long long, long long*,
                                         long long, long long, cufftType, long long, size_t*)>);
static_assert(std::is_same_v<decltype(cufftSetWorkArea), cufftResult(cufftHandle, void*)>);
static_assert(std::is_same_v<decltype(cufftSetStream), cufftResult(cufftHandle, cudaStream_t)>);
static_assert(std::is_same_v<decltype(cufftExecC2C), cufftResult(cufftHandle, cufftComplex*, cufftComplex*, int)>);
static_assert(std::is_same_v<decltype(cufftExecZ2Z), cufftResult(cufftHandle, cufftDoubleComplex*, cufftDoubleComplex*, int)>);
