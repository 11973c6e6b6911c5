#pragma once

/// Tests of nvcc-compiled programs, with the interpreter and as native code.

#include <gtest/gtest.h>

#include <random>

#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {

class programs_fixture : public ::testing::TestWithParam<engine_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == engine_kind::compiler && !has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  }
  kernel_runner load(const std::string& name) {
    return kernel_runner({read_file(std::string(HPE_PTX_PROGRAMS) + "/" + name + ".ptx")}, GetParam());
  }
  std::mt19937 random_{std::random_device{}()};
};

#define EXPECT_RUNS(call)                                    \
  do {                                                       \
    const auto stopped = (call);                             \
    ASSERT_FALSE(stopped.has_value()) << stopped->message(); \
  } while (false)

#define INSTANTIATE_FOR_ENGINES(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(                                                        \
      , suite, ::testing::Values(engine_kind::interpreter, engine_kind::compiler), \
      [](const auto& info) { return info.param == engine_kind::interpreter ? "Interpreted" : "Compiled"; })

}  // namespace hpe::ptx::test
