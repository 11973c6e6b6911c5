#pragma once

/// Asynchronous bulk copies into shared memory, and the barriers that signal when they end (Hopper and later; PTX ISA:
/// mbarrier, cp.async.bulk).

#include <stdint.h>

namespace hpe::kernels::gpu {

/// A barrier in shared memory. A phase of the barrier ends when as many threads as given to begin() have arrived and
/// all announced bytes have been copied. Phases are distinguished by their parity; the first phase has parity 0.
class barrier {
 public:
  /// Initialises the barrier. One thread calls this function; the other threads may use the barrier after a
  /// __syncthreads.
  __device__ __forceinline__ void begin(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  /// Makes initialised barriers visible to the copy engine. Must be called after begin().
  static __device__ __forceinline__ void publish() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  /// Arrives, and announces that copies will deliver `bytes` bytes.
  __device__ __forceinline__ void arrive_expecting(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  /// Waits until the phase with this parity has ended. The caller then sees what other threads wrote before they
  /// arrived.
  __device__ __forceinline__ void wait(unsigned parity) {
    unsigned done;
    do {
      asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(address()), "r"(parity)
                   : "memory");
    } while (done == 0);
  }

  [[nodiscard]] __device__ __forceinline__ unsigned address() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(this));
  }

 private:
  uint64_t state_;
};

/// Starts a bulk copy of `bytes` bytes from device memory to shared memory. The thread must have announced the bytes to
/// the barrier `done` before. Addresses and `bytes` must be multiples of 16.
__device__ __forceinline__ void bulk_load(void* to_shared, const void* from, unsigned bytes, const barrier& done) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to_shared))),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(done.address())
               : "memory");
}

}  // namespace hpe::kernels::gpu
