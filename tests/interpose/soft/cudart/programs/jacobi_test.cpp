// MPI and CUDA together on soft devices: the solver compares its results with those of the CPU, bit by bit.
#include <gtest/gtest.h>

#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

class Jacobi : public testing::TestWithParam<int> {};

TEST_P(Jacobi, EqualsItsSerialResult) {
  const std::string ranks = std::to_string(GetParam());
  const outcome o =
      soft_run(HPE_TEST_MPIRUN " -n " + ranks + " -x HPE_SOFT_THREADS=1 " + cuda_program("jacobi"), GetParam());
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_NE(o.text.find("jacobi on " + ranks + " ranks: right\n"), std::string::npos) << o.text;
}

INSTANTIATE_TEST_SUITE_P(OnRanks, Jacobi, testing::Values(1, 2, 4), testing::PrintToStringParamName());

TEST(Mpi, SendsDataThatQueuedKernelsWrite) {
  const outcome o = soft_run(HPE_TEST_MPIRUN " -n 2 -x HPE_SOFT_THREADS=1 " + cuda_program("queued_mpi"), 1);
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_NE(o.text.find("queued work and MPI: right\n"), std::string::npos) << o.text;
}

TEST(Jacobi, SlabsOfUnequalSize) {
  const outcome o = soft_run(HPE_TEST_MPIRUN " -n 3 -x HPE_SOFT_THREADS=1 " + cuda_program("jacobi 37 13 25"), 2);
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_NE(o.text.find("jacobi on 3 ranks: right\n"), std::string::npos) << o.text;
}

}  // namespace
