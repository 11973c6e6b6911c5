// Runs the tests in every rank. A rank in which a check fails prints the failure and continues, because all ranks must
// make the same collective calls.
#include <cstdlib>

#include "tests/mpi/ranks.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int provided = 0;
  // HPE_TEST_ONE_THREAD selects a run without MPI_THREAD_MULTIPLE.
  const int level = std::getenv("HPE_TEST_ONE_THREAD") == nullptr ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, level, &provided);
  if (rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    class failures : public testing::EmptyTestEventListener {
      void OnTestPartResult(const testing::TestPartResult& r) override {
        if (r.failed()) std::printf("%s:%d: %s\n", r.file_name(), r.line_number(), r.message());
      }
    };
    listeners.Append(new failures);
  }
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
