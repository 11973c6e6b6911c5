#pragma once

/// The CUDA driver of the sweep: a library in which each entry (driver function) asks the test whether the call must
/// fail. If not, it calls the same entry of the stand-in (tests/interpose/gpu/stand_in). The test finds the functions
/// below by hpe_cuda_driver_entry.

#include <cstdint>

namespace sweep {

/// sweep_ask sets the function `ask`, which is called before each call of an entry, in the calling thread. If
/// ask(entry) returns an error, the entry does nothing and returns this error; if it returns 0, the call is made.
using ask_function = int(const char* entry);
using set_ask_function = void(ask_function* ask);
/// sweep_stand_in returns a function of the stand-in itself.
using stand_in_entry_function = void*(const char* name);

}  // namespace sweep
