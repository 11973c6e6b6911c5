#pragma once

#include <cstdlib>

#include "hpe/hpe.hpp"
#include "tests/core/test_kernels.h"

/// Returns the path of the module: the value of HPE_TEST_KERNELS if the tests were moved, otherwise the path at which
/// the module was built.
inline const char* test_kernels_path() {
  const char* elsewhere = std::getenv("HPE_TEST_KERNELS");
  return elsewhere != nullptr ? elsewhere : HPE_TEST_KERNELS;
}

/// The kernels of test_kernels.cpp, loaded when test_kernel() is first called.
struct loaded_kernels {
  hpe::module module{test_kernels_path()};
  hpe::kernel<fill_parameters> fill{module, "fill"};
  hpe::kernel<add_parameters> add{module, "add"};
  hpe::kernel<increment_parameters> increment{module, "increment"};
  hpe::kernel<meet_parameters> meet{module, "meet"};
  hpe::kernel<crash_parameters> nothing{module, "nothing"};
  hpe::kernel<crash_parameters> crash{module, "crash"};
  hpe::kernel<divide_parameters> divide{module, "divide"};
};

inline const loaded_kernels& test_kernel() {
  static const loaded_kernels all;
  return all;
}
