#pragma once

/// Tests of programs that nvcc compiled, with the interpreter and as native code.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {

class programs_fixture : public ::testing::TestWithParam<engine_kind> {
 protected:
  void SetUp() override {
    const bool compiles = GetParam() != engine_kind::interpreter && GetParam() != engine_kind::interpreter_in_parts;
    if (compiles && !has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  }
  kernel_runner load(const std::string& name, warp_order order = warp_order::independent) {
    return kernel_runner({read_file(std::string(HPE_PTX_PROGRAMS) + "/" + name + ".ptx")}, GetParam(), order);
  }
  std::mt19937 random_{std::random_device{}()};
};

/// A comparison of setp for integers, and the same comparison in C++.
struct comparison {
  const char* name;
  std::function<bool(std::int64_t, std::int64_t)> holds;
};

inline const std::vector<comparison>& comparisons() {
  static const std::vector<comparison> all = {{"eq", std::equal_to<>()}, {"ne", std::not_equal_to<>()},
                                              {"lt", std::less<>()},     {"le", std::less_equal<>()},
                                              {"gt", std::greater<>()},  {"ge", std::greater_equal<>()}};
  return all;
}

#define EXPECT_RUNS(call)                                    \
  do {                                                       \
    const auto stopped = (call);                             \
    ASSERT_FALSE(stopped.has_value()) << stopped->message(); \
  } while (false)

inline const char* name_of(engine_kind kind) {
  switch (kind) {
    case engine_kind::interpreter: return "Interpreted";
    case engine_kind::compiler: return "Compiled";
    case engine_kind::handed_over: return "HandedOver";
    case engine_kind::interpreter_in_parts: return "InterpretedInParts";
    case engine_kind::compiler_in_parts: return "CompiledInParts";
  }
  return "";
}

#define INSTANTIATE_FOR_ENGINES(suite)                                                                  \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(engine_kind::interpreter, engine_kind::compiler), \
                           [](const auto& info) { return name_of(info.param); })

/// Like INSTANTIATE_FOR_ENGINES, and also runs the tests with blocks that leave the interpreter.
#define INSTANTIATE_FOR_ENGINES_AND_HANDOVER(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                                  \
      , suite, ::testing::Values(engine_kind::interpreter, engine_kind::compiler, engine_kind::handed_over), \
      [](const auto& info) { return name_of(info.param); })

/// Like INSTANTIATE_FOR_ENGINES_AND_HANDOVER, and also runs the tests with each grid in several parts.
#define INSTANTIATE_FOR_ENGINES_AND_PARTS(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      , suite,                                                                                     \
      ::testing::Values(engine_kind::interpreter, engine_kind::compiler, engine_kind::handed_over, \
                        engine_kind::interpreter_in_parts, engine_kind::compiler_in_parts),        \
      [](const auto& info) { return name_of(info.param); })

}  // namespace hpe::ptx::test
