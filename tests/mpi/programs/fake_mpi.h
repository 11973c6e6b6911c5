#pragma once

/// An MPI library of three ranks whose functions are in this program, so that a test decides when each message arrives.
/// The calling process is rank 1; ranks 0 and 1 are on one machine. The wrappers are linked into this program.

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "interpose/mpi/real.h"

namespace fake_mpi {

inline constexpr int rank = 1, neighbour = 0, distant = 2;

/// A message that hpe has begun to send or receive.
struct message {
  bool is_send = false;
  void* buffer = nullptr;
  int bytes = 0, peer = 0, tag = 0;
  bool is_complete = false;
  std::size_t received = 0;  // for a receive, once it is complete
  int error = MPI_SUCCESS;
};

/// All messages in the order in which hpe has begun them.
[[nodiscard]] std::deque<message>& messages();
void complete(message& which, std::size_t received = 0, int error = MPI_SUCCESS);

/// Functions and variables that the library has, in addition to those that every MPI library has.
[[nodiscard]] std::map<std::string, void*>& symbols();

/// What the library answers.
struct answers {
  std::string version = "Fake MPI";
  int version_result = MPI_SUCCESS;
  int request_is_complete = 0;
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};
[[nodiscard]] answers& library();

/// Makes hpe use the library. With begin_job(), also as if the program had called MPI_Init.
void use();
void begin_job();
/// Calls the function that hpe has registered, as MPI does while it waits.
int make_progress();
/// The number of times that hpe has called MPI's own progress function.
[[nodiscard]] int& progress_calls();

/// A test that needs a running job.
class with_job : public ::testing::Test {
 protected:
  with_job() { begin_job(); }
};

}  // namespace fake_mpi
