#pragma once

#include "hpe/hpe.hpp"
#include "tests/core/test_kernels.h"

/// The kernels of test_kernels.cpp, loaded at the first call.
struct loaded_kernels {
  hpe::module module{HPE_TEST_KERNELS};
  hpe::kernel<fill_parameters> fill{module, "fill"};
  hpe::kernel<add_parameters> add{module, "add"};
  hpe::kernel<increment_parameters> increment{module, "increment"};
  hpe::kernel<crash_parameters> nothing{module, "nothing"};
  hpe::kernel<crash_parameters> crash{module, "crash"};
  hpe::kernel<divide_parameters> divide{module, "divide"};
};

inline const loaded_kernels& test_kernel() {
  static const loaded_kernels all;
  return all;
}
