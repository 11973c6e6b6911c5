// Runs the tests on two soft devices with enough memory for all tests, unless the environment sets these variables.

#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("HPE_DEVICES", "soft:2", 0);  // NOLINT(concurrency-mt-unsafe): before hpe starts
  ::setenv("HPE_SOFT_MEMORY", "3G", 0);  // NOLINT(concurrency-mt-unsafe)
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
