#pragma once

#include <hpe/kernel.h>

struct scale_parameters {
  float* data;
  uint64_t count;
  float factor;
};
