#pragma once

#include <cuda.h>

#include <functional>
#include <string>

#include "tests/interpose/gpu/stand_in/stand_in.h"

namespace stand_in {

/// Returns the file of the stand-in, to which main() has set HPE_CUDA_DRIVER.
std::string file();

/// Returns a function of the stand-in itself. The program's own dlopen and dlsym would return the shim's function.
void* find_entry(const char* name);
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(find_entry(name));
}

unsigned calls(const char* symbol);
std::byte* memory(CUdeviceptr address);
void pause(bool paused);
/// Makes the next call of an entry (a function of the driver) begin with happen(). `happen` must exist until then.
void meanwhile(const char* symbol, std::function<void()>& happen);
/// Makes the next call of an entry return `result`, for entries that support it (see stand_in.h).
void fail(const char* symbol, CUresult result);

/// Starts the driver and makes device 0's primary context current, as CUDA's runtime does. If that fails, the test
/// fails.
void enter_device_0();

}  // namespace stand_in
