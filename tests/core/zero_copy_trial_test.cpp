#include "runtime/core/operations/zero_copy_trial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hpe::core {
namespace {

using std::chrono::milliseconds;
using way = zero_copy_trial::way;

/// A program that repeats a launch and waits for it.
struct program {
  zero_copy_trial trial;
  zero_copy_trial::key key{nullptr, {1, 1, 1}, {}};
  milliseconds in_parts, with_zero_copy;
  unsigned waits = 0, zero_copies = 0;

  program(milliseconds a, milliseconds b) : in_parts(a), with_zero_copy(b) {}

  way launch() {
    const way how = trial.choose(key, [&] { ++waits; });
    if (how == way::zero_copy) ++zero_copies;
    std::this_thread::sleep_for(how == way::parts ? in_parts : with_zero_copy);
    return how;
  }
  void launch(int count) {
    for (int n = 0; n < count; ++n) launch();
  }
};

TEST(zero_copy_trial, the_faster_way_is_used) {
  program gains(milliseconds(8), milliseconds(2)), loses(milliseconds(4), milliseconds(6));
  for (program* p : {&gains, &loses}) p->launch(30);
  EXPECT_EQ(gains.launch(), way::zero_copy);
  EXPECT_EQ(loses.launch(), way::parts);
  EXPECT_EQ(loses.zero_copies, 6U);
  const unsigned waits = gains.waits;
  gains.launch(30);
  EXPECT_EQ(gains.waits, waits);
}

TEST(zero_copy_trial, a_launch_that_is_much_slower_is_tried_only_twice) {
  program p(milliseconds(2), milliseconds(40));
  p.launch(40);
  EXPECT_EQ(p.zero_copies, 2U);
}

TEST(zero_copy_trial, a_decision_ends_the_trial) {
  program p(milliseconds(0), milliseconds(0));
  p.launch(3);
  p.trial.decide(p.key, way::zero_copy);
  EXPECT_EQ(p.launch(), way::zero_copy);
  zero_copy_trial::key other = p.key;
  other.grid[0] = 2;
  EXPECT_EQ(p.trial.choose(other, [] {}), way::parts) << "another grid is another launch";
}

}  // namespace
}  // namespace hpe::core
