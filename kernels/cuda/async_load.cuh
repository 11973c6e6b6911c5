#pragma once

/// Asynchronous loads of 16 bytes from the memory of this device or a peer into shared memory (PTX ISA: cp.async). A
/// thread divides its loads into groups and waits for groups. A thread may read data that other threads loaded after
/// those threads have waited for their loads and a __syncthreads has followed.

#include <stdint.h>

namespace hpe::kernels::gpu {

inline constexpr uint32_t async_load_bytes = 16;

/// Starts to load 16 bytes. Both addresses must be multiples of 16.
__device__ __forceinline__ void async_load(void* to_shared, const void* from) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to_shared))),
      "l"(__cvta_generic_to_global(from))
      : "memory");
}

/// Ends the calling thread's current group of loads.
__device__ __forceinline__ void end_loads() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits for all groups of the calling thread except the last `but` groups.
template <unsigned but>
__device__ __forceinline__ void wait_for_loads() {
  asm volatile("cp.async.wait_group %0;" ::"n"(but) : "memory");
}

}  // namespace hpe::kernels::gpu
