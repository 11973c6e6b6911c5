#pragma once

#include <cuda.h>

#include <string>

#include "tests/interpose/cuda/stand_in.h"

namespace stand_in {

/// The file of the stand-in, which main made HPE_CUDA_DRIVER.
std::string file();

unsigned calls(const char* symbol);
std::byte* memory(CUdeviceptr address);
void pause(bool paused);

}  // namespace stand_in
