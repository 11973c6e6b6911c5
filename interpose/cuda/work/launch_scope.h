#pragma once

#include <optional>
#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The program's launch of a kernel.
struct kernel_launch {
  CUfunction function = nullptr;  ///< or a CUkernel, which launch entries accept too
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// Every word in the parameters of a launch, also inside structures, that might be an address: the objects that the
/// kernel can use if it follows no pointers in memory. Nothing if the driver does not tell the parameters' sizes.
std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch);

}  // namespace hpe::cuda_hooks
