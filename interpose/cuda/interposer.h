#pragma once

#include "interpose/cuda/pageable_copy.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// What hpe does inside an unmodified CUDA program. Starts with the first call that has work for it and is never
/// destroyed: threads of the program may come to the very end.
class interposer {
 public:
  /// nullptr where the driver is too old for hpe, which then takes no part.
  static interposer* instance() noexcept;
  /// The same, without starting it.
  static interposer* started() noexcept;

  pageable_copy& copies() noexcept { return copies_; }

  /// Some context is about to end.
  void forget_contexts() { copies_.rings().clear(); }

 private:
  interposer() : copies_(cu_) {}

  const device::cuda::driver cu_;
  pageable_copy copies_;
};

}  // namespace hpe::cuda_hooks
