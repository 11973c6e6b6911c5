#pragma once

#include <cuda_runtime_api.h>

const void* kernel_add_to();    // (int* values, int count, int what)
const void* kernel_double();    // (int* values, int count)
const void* kernel_far_away();  // (): writes to an address at which there is no memory
const void* kernel_fetch();     // (cudaTextureObject_t, float* out, int count)
const void* kernel_sample();    // (cudaTextureObject_t, float* out, const float2* where, int count)
const void* kernel_pick();      // (cudaTextureObject_t, int4* out, const float2* where, int count)
// Reads an array that was made with `flags`. where.w is the layer or, if the array has no layers, the number of
// dimensions.
const void* kernel_read();  // (cudaTextureObject_t, float* out, const float4* where, int count, unsigned flags)
const void* kernel_fill();  // (cudaSurfaceObject_t, int width, int height, int depth, unsigned flags, int channel)
const void* kernel_blur();  // (cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height, int mode)

cudaError_t add_to(int* values, int count, int what, cudaStream_t stream);
cudaError_t double_all(int* values, int count, cudaStream_t stream);
