// The table is printed when the process ends, so each test uses it in a child process.

#include "runtime/trace/spread_table.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/error.h"

namespace hpe::trace {
namespace {

TEST(SpreadTable, IsPrintedAtTheEndIfTheProgramAsksForIt) {
  const auto launch_and_exit = [] {
    ::setenv("HPE_SPREAD_EXPLAIN", "1", 1);
    spread_table::active()->add("one", 1, 0.001, "its memory is scattered");
    spread_table::active()->add("both", 1, 0.002, "the first launch");
    spread_table::active()->add("both", 3, 0.001, "vectors are cut");
    spread_table::active()->add("both", 2, 0.001, "another reason");
    std::exit(EXIT_SUCCESS);
  };
  EXPECT_EXIT(launch_and_exit(), testing::ExitedWithCode(EXIT_SUCCESS),
              "kernels over several devices\n *launches *spread *devices *ms *kernel\n"
              " *3 *2 *3 *4.0  both\n *spread: another reason\n *on one device: the first launch\n"
              " *1 *0 *1 *1.0  one\n *on one device: its memory is scattered\n$");
}

TEST(SpreadTable, IsAbsentOtherwise) {
  const auto exit_with = [](const char* value) {
    value == nullptr ? ::unsetenv("HPE_SPREAD_EXPLAIN") : ::setenv("HPE_SPREAD_EXPLAIN", value, 1);
    std::exit(spread_table::active() == nullptr ? EXIT_SUCCESS : EXIT_FAILURE);
  };
  EXPECT_EXIT(exit_with(nullptr), testing::ExitedWithCode(EXIT_SUCCESS), "^$");
  EXPECT_EXIT(exit_with("0"), testing::ExitedWithCode(EXIT_SUCCESS), "^$");
}

TEST(SpreadTable, RefusesOtherValuesOfTheOption) {
  const auto ask = [] {
    ::setenv("HPE_SPREAD_EXPLAIN", "perhaps", 1);
    try {
      static_cast<void>(spread_table::active());
    } catch (const error&) {
      std::exit(EXIT_SUCCESS);
    }
    std::exit(EXIT_FAILURE);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(EXIT_SUCCESS), "^$");
}

}  // namespace
}  // namespace hpe::trace
