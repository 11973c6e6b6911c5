#pragma once

// The parameters of the kernels in kernels.cpp and kernels.cu. Programs and kernels include
// the same structs.

#include <hpe/kernel.h>

struct fill_parameters {
  float* data;
  uint64_t count;
  float first;  // element i becomes first + i
};

struct saxpy_parameters {
  const float* x;
  float* y;
  uint64_t count;
  float a;  // y += a * x
};

struct heat_parameters {
  const float* now;
  float* next;
  uint64_t count;  // the number of cells, without the rim of one cell at either end
};

/// Returns the value of a cell in the next time step. The check on the CPU uses the same
/// function.
constexpr float heat(const float* now, uint64_t cell) {
  return now[cell] + 0.25F * (now[cell - 1] - 2 * now[cell] + now[cell + 1]);
}
