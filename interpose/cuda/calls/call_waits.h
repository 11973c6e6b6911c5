#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/cuda/calls/known_memory.h"
#include "interpose/cuda/work/program_contexts.h"
#include "interpose/cuda/work/queued_uses.h"

namespace hpe::cuda_hooks {

/// The waits of libc and MPI calls for work that the program has queued. Functions throw hpe::error if the work has
/// failed. Thread safe.
class call_waits {
 public:
  /// by_parameters: launches use only the memory that their parameters name (HPE_SCOPE=args).
  call_waits(const device::cuda::driver& cu, program_contexts& program, queued_uses& uses, bool by_parameters)
      : cu_(cu), program_(program), uses_(uses), by_parameters_(by_parameters) {}

  /// Waits for all work of the program, in the context `also` too, unless the work is known to be done.
  void for_all(CUcontext also);
  /// Waits for the work that may use an allocation, as far as hpe can tell that from other work, else for all.
  void for_users_of(const known_memory::allocation& memory);

  /// Names the work that the program has queued so far; 0 if all of it is done.
  [[nodiscard]] std::uint64_t queued_now() noexcept;
  /// Whether the work of that name is known to be done.
  [[nodiscard]] bool is_over(std::uint64_t queued) const noexcept { return queued <= over_.load(); }

 private:
  [[nodiscard]] bool for_streams_with(const known_memory::allocation& memory);

  const device::cuda::driver& cu_;
  program_contexts& program_;
  queued_uses& uses_;
  const bool by_parameters_;
  std::atomic<std::uint64_t> begun_{0};  // waits for all work
  std::atomic<std::uint64_t> over_{0};   // the highest number of such a wait that is over
};

}  // namespace hpe::cuda_hooks
