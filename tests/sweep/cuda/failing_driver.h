#pragma once

/// The CUDA driver of the sweep: a library whose entries each ask the test whether this call fails, and else are those
/// of the stand-in (tests/interpose/cuda/stand_in). The test finds these functions by hpe_cuda_driver_entry.

#include <cstdint>

namespace sweep {

/// sweep_ask: ask(entry) returns the result with which a call fails, which then does nothing; 0: the call is made.
/// Asked in every thread that calls the driver.
using ask_function = int(const char* entry);
using set_ask_function = void(ask_function* ask);
/// sweep_stand_in: a function of the stand-in itself.
using stand_in_entry_function = void*(const char* name);

}  // namespace sweep
