#include "runtime/fault/request.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/schedules/explore.h"

namespace {

using hpe::os::fault_verdict;
using request = hpe::fault::basic_request<schedules::model>;
using schedules::explorer;

std::byte* address(std::uintptr_t n) {
  return reinterpret_cast<std::byte*>(n << 12);  // NOLINT(performance-no-int-to-ptr): names a request
}

/// Executes the steps of a thread that faults at address n. Only addresses with odd numbers belong to hpe.
fault_verdict ask(request& r, std::uintptr_t n) {
  auto mine = r.post(address(n), true, false);
  for (; !mine; mine = r.post(address(n), true, false)) schedules::model::relax();
  auto result = r.answered(*mine);
  for (; !result; result = r.answered(*mine)) r.sleep(*mine);
  r.leave(*mine);
  return *result;
}

/// Checks the request as a lane does, and answers it if a thread has posted it.
bool answer_one(request& r) {
  if (!r.take()) return false;
  const auto n = reinterpret_cast<std::uintptr_t>(r.address()) >> 12;
  r.answer(n % 2 == 1 ? fault_verdict::retry : fault_verdict::not_ours);
  return true;
}

void answer(request& r, int count) {
  while (count > 0) {
    if (answer_one(r))
      --count;
    else
      schedules::model::relax();
  }
}

void answer_until(const bool& over, request& r) {
  while (!over)
    if (!answer_one(r)) schedules::model::relax();
}

TEST(request, each_thread_gets_the_answer_to_its_own_wish_in_every_order) {
  std::unique_ptr<request> shared;
  const std::size_t orders = explorer::explore(
      2,
      [&]() -> explorer::threads {
        shared = std::make_unique<request>();
        return {[&] { EXPECT_EQ(ask(*shared, 1), fault_verdict::retry); },
                [&] { EXPECT_EQ(ask(*shared, 2), fault_verdict::not_ours); }, [&] { answer(*shared, 2); }};
      },
      [&] { ASSERT_TRUE(shared->is_free()); });
  EXPECT_GT(orders, 100u);
}

// A thread posts a request and leaves the wait by a jump, at once or a little later. At its next fault, the thread
// takes the request back.
TEST(request, one_that_is_left_behind_is_free_after_its_answer_in_every_order) {
  std::unique_ptr<request> shared;
  bool over = false;
  const std::size_t orders = explorer::explore(
      3,
      [&]() -> explorer::threads {
        shared = std::make_unique<request>();
        over = false;
        return {[&] {
                  (void)shared->post(address(2), true, false);
                  (void)shared->is_free();  // only a step, at which other threads may run
                  shared->take_back();
                  EXPECT_EQ(ask(*shared, 1), fault_verdict::retry);
                  over = true;
                },
                [&] { answer_until(over, *shared); }};
      },
      [&] { ASSERT_TRUE(shared->is_free()); });
  EXPECT_GT(orders, 20u);
}

// A signal handler interrupts the wait and faults itself. The interrupted request is then taken back, and the thread
// that waited repeats its access.
TEST(request, one_that_is_taken_back_from_a_thread_that_waits_lets_it_go_on_in_every_order) {
  std::unique_ptr<request> shared;
  bool over = false;
  const std::size_t orders = explorer::explore(
      3,
      [&]() -> explorer::threads {
        shared = std::make_unique<request>();
        over = false;
        return {[&] {
                  EXPECT_EQ(ask(*shared, 1), fault_verdict::retry);
                  over = true;
                },
                [&] {
                  shared->take_back();
                  shared->take_back();
                },
                [&] { answer_until(over, *shared); }};
      },
      [&] { ASSERT_TRUE(shared->is_free()); });
  EXPECT_GT(orders, 100u);
}

}  // namespace
