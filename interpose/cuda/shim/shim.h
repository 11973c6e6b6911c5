#pragma once

/// The library that programs load instead of the CUDA driver: every entry forwards to the driver or to a hook of hpe.

namespace hpe::cuda_shim {

/// The handle of the driver's library, which the first call loads; nullptr if there is none. Takes no lock.
void* driver();

/// The value of the option HPE_CUDA_DRIVER.
const char* wanted_driver();

/// The hook for a function, or the function itself. Compares addresses that the driver returned, so it distinguishes
/// versions of an entry as the driver does.
void* hook_for(void* function);

}  // namespace hpe::cuda_shim
