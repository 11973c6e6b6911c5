#pragma once

/// The shim: the library that programs load in place of the CUDA driver. Each function of the shim jumps to the
/// driver's function of the same name or to hpe's hook for it.

namespace hpe::cuda_shim {

/// Returns the handle of the driver's library, which the first call loads; nullptr if no driver is found. Takes no
/// lock.
void* driver();

/// Returns the value of the option HPE_CUDA_DRIVER.
const char* wanted_driver();

/// Returns the hook for a function of the driver, or the function itself if it has no hook. `function` is the address
/// that the driver returned; it identifies the version of the entry.
void* hook_for(void* function);

}  // namespace hpe::cuda_shim
