// The kernels of `hpe bench remote` for GPUs.

#include "bench/remote/pass.h"

namespace {

using namespace hpe::bench::remote;

__device__ uint64_t global_time() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

__device__ void add(float4& sum, const float4& v) {
  sum.x += v.x;
  sum.y += v.y;
  sum.z += v.z;
  sum.w += v.w;
}

__device__ const float4* as_vector(const element* e) { return reinterpret_cast<const float4*>(e); }
__device__ float4* as_vector(element* e) { return reinterpret_cast<float4*>(e); }

}  // namespace

extern "C" __global__ void __launch_bounds__(tile_elements, 16) remote_pass(const __grid_constant__ pass p) {
  float4 sum{};
  for (uint32_t tile = blockIdx.x; tile < p.columns * p.rows; tile += gridDim.x) {
    if (p.stamps != nullptr && threadIdx.x == 0) p.stamps[2 * uint64_t{tile}] = global_time();
    const uint32_t column = tile % p.columns, row = tile / p.columns;
    const uint64_t i = uint64_t{tile} * tile_elements + threadIdx.x;
    const float number = static_cast<float>(threadIdx.x);
    float4 v{number, number, number, number};
    if (p.reads != 0) v = *as_vector(p.in[where(p.far_reads, column, row)] + i);
#pragma unroll 4
    for (uint32_t s = 0; s < p.steps; ++s) {
      v.x = fmaf(v.x, factor, addend);
      v.y = fmaf(v.y, factor, addend);
      v.z = fmaf(v.z, factor, addend);
      v.w = fmaf(v.w, factor, addend);
    }
    if (p.writes != 0)
      *as_vector(p.out[where(p.far_writes, column, row)] + i) = v;
    else
      add(sum, v);
    if (p.stamps != nullptr) {
      __syncthreads();
      if (threadIdx.x == 0) p.stamps[2 * uint64_t{tile} + 1] = global_time();
    }
  }
  if (p.writes == 0) *as_vector(p.sums + blockIdx.x * tile_elements + threadIdx.x) = sum;
}

extern "C" __global__ void __launch_bounds__(tile_elements, 16) remote_look_up(const __grid_constant__ look_up p) {
  float4 sum{};
#pragma unroll 4
  for (uint32_t k = 0; k < p.reads; ++k) {
    const float4* const place = as_vector(p.table + entry(blockIdx.x, threadIdx.x, k, p.entries));
    add(sum, p.read_only != 0 ? __ldg(place) : *place);
  }
  *as_vector(p.sums + blockIdx.x * tile_elements + threadIdx.x) = sum;
}

extern "C" __global__ void __launch_bounds__(tile_elements) remote_add(const __grid_constant__ adding p) {
  for (uint32_t k = 0; k < p.adds; ++k) {
    uint32_t* const counter = p.counters + entry(blockIdx.x, threadIdx.x, k, p.entries);
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
  }
}

namespace {

template <class Weight>
__device__ void filter_with(const filter& p, Weight weight) {
  const int64_t side = p.side;
  const auto reach = static_cast<int>(p.reach), row_of_weights = 2 * reach + 1;
  for (int64_t i = int64_t{blockIdx.x} * tile_elements + threadIdx.x; i < side * side;
       i += int64_t{gridDim.x} * tile_elements) {
    const int64_t y = i / side, x = i % side;
    float sum = 0;
    for (int dy = -reach; dy <= reach; ++dy) {
      const float* const row = p.in + in_image(y + dy, p.side) * side;
      for (int dx = -reach; dx <= reach; ++dx)
        sum = fmaf(weight((dy + reach) * row_of_weights + dx + reach), row[in_image(x + dx, p.side)], sum);
    }
    p.out[i] = sum;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(tile_elements) remote_filter(const __grid_constant__ filter p) {
  // The load is volatile, so that the compiler does not move it out of the loop: each pixel must load the weights
  // itself.
  switch (p.path) {
    case weight_path::plain:
      filter_with(p, [&](int k) { return *static_cast<const volatile float*>(p.weights + k); });
      break;
    case weight_path::read_only: filter_with(p, [&](int k) { return __ldg(p.weights + k); }); break;
    case weight_path::parameter: filter_with(p, [&](int k) { return p.by_value[k]; }); break;
  }
}
