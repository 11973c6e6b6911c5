#pragma once

/// The library that programs get instead of the CUDA driver: every entry forwards to the driver, or to a hook of hpe.

namespace hpe::cuda_shim {

/// The driver's library, loaded by the first call; nullptr where there is none. Takes no lock.
void* driver();

/// The option HPE_CUDA_DRIVER.
const char* wanted_driver();

/// What to call instead of a function: its hook, or itself. Goes by the address that the driver gave, so versions of an
/// entry are told apart as the driver tells them.
void* hook_for(void* function);

}  // namespace hpe::cuda_shim
