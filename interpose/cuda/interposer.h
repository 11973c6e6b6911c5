#pragma once

#include "interpose/cuda/adopted_memory.h"
#include "interpose/cuda/pageable_copy.h"
#include "interpose/cuda/touch_service.h"
#include "runtime/base/options.h"
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

  [[nodiscard]] const device::cuda::driver& driver() const noexcept { return cu_; }
  [[nodiscard]] bool scope_is_parameters() const noexcept { return option_.scope == "args"; }
  pageable_copy& copies() noexcept { return copies_; }
  adopted_memory& adopted() noexcept { return adopted_; }

  /// Lets CPU code use the device memory of the program from now on.
  void serve_touches();

  /// Some context is about to end.
  void forget_contexts() {
    adopted_.drop_all();
    copies_.rings().clear();
  }

 private:
  interposer();

  const options option_ = options::from_environment();
  const device::cuda::driver cu_;
  pageable_copy copies_;
  adopted_memory adopted_;
  std::once_flag serving_;
};

}  // namespace hpe::cuda_hooks
