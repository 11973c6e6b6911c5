// A program that is linked with CUDA 12's runtime library.
#include <gtest/gtest.h>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

TEST(Cuda12, ProgramsRunAsTheyAre) {
  const outcome o = soft_run(cuda_program("cuda12"));
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, "CUDA 12: right\n");
}

}  // namespace
