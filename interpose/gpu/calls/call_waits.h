#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/gpu/calls/known_memory.h"
#include "interpose/gpu/work/program_contexts.h"
#include "interpose/gpu/work/queued_uses.h"

namespace hpe::cuda_hooks {

/// Lets libc and MPI calls wait for device work that the program has queued. The functions that wait throw hpe::error
/// if that work has failed. Thread safe.
class call_waits {
 public:
  /// by_parameters: hpe assumes that a launch uses only the allocations to which its parameters point (HPE_SCOPE=args).
  call_waits(const device::cuda::driver& cu, program_contexts& program, queued_uses& uses, bool by_parameters)
      : cu_(cu), program_(program), uses_(uses), by_parameters_(by_parameters) {}

  /// Waits for all device work of the program, including the work in the context `also`. Returns at once if all this
  /// work is known to be done. Does not wait for a context in which a stream is being captured, because the driver
  /// refuses this wait.
  void for_all(CUcontext also);
  /// Waits for the work that may use an allocation, or for all work if hpe cannot determine which work may use the
  /// allocation.
  void for_users_of(const known_allocation& memory);

  /// Returns a number that identifies the work that the program has queued so far; 0 if all this work is done.
  [[nodiscard]] std::uint64_t queued_now() noexcept;
  /// Whether the work that the number identifies is known to be done.
  [[nodiscard]] bool is_over(std::uint64_t queued) const noexcept { return queued <= over_.load(); }

 private:
  [[nodiscard]] bool for_streams_with(const known_allocation& memory);

  const device::cuda::driver& cu_;
  program_contexts& program_;
  queued_uses& uses_;
  const bool by_parameters_;
  std::atomic<std::uint64_t> begun_{0};  // the number of waits for all work that have begun
  std::atomic<std::uint64_t> over_{0};   // the highest number of those waits for all work that have ended
};

}  // namespace hpe::cuda_hooks
