#include "runtime/fault/request_board.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csetjmp>
#include <csignal>
#include <optional>
#include <set>
#include <thread>

#include "tests/device/layout.h"

namespace hpe::fault {
namespace {

class request_board_test : public testing::Test {
 protected:
  /// Starts a lane that answers "retry" for even addresses and "not ours" for odd addresses.
  std::thread lane(request_board& board, unsigned number) {
    return std::thread([this, &board, number] {
      std::vector<request*> taken;
      while (!stop.load()) {
        board.take(number, taken);
        for (request* r : taken) {
          const auto wish = reinterpret_cast<std::uintptr_t>(r->address());
          EXPECT_EQ(wish / 2 % 2, number) << "another lane's";
          EXPECT_EQ(r->write(), wish % 3 == 0);
          ++answered;
          r->answer(wish % 2 == 0 ? fault_verdict::retry : fault_verdict::not_ours);
        }
        taken.clear();
        gates[number]->sleep({}, std::chrono::steady_clock::now() + std::chrono::seconds(1));
      }
    });
  }

  std::unique_ptr<device::device_set> set = device::open_devices("soft:1", device_test::layout_for(2));
  std::unique_ptr<device::gate> gates[2] = {set->create_gate(), set->create_gate()};
  std::atomic<bool> stop{false};
  std::atomic<unsigned> answered{0};
};

TEST_F(request_board_test, every_wish_gets_its_own_answer_once) {
  device::gate* const both[] = {gates[0].get(), gates[1].get()};
  request_board board(both);
  std::thread lanes[] = {lane(board, 0), lane(board, 1)};

  constexpr unsigned threads = 24;
  constexpr unsigned wishes = 200;
  std::vector<std::thread> faulting;
  for (unsigned t = 0; t < threads; ++t) {
    faulting.emplace_back([&, t] {
      for (std::uintptr_t n = 1; n <= wishes; ++n) {
        const std::uintptr_t wish = t * 1000 + n;
        const fault_verdict v = board.ask(wish / 2 % 2, reinterpret_cast<std::byte*>(wish), wish % 3 == 0);
        ASSERT_EQ(v, wish % 2 == 0 ? fault_verdict::retry : fault_verdict::not_ours);
      }
    });
  }
  for (std::thread& t : faulting) t.join();
  stop = true;
  for (const auto& gate : gates) gate->ring();
  for (std::thread& t : lanes) t.join();
  EXPECT_EQ(answered.load(), threads * wishes);
}

TEST_F(request_board_test, more_threads_than_slots_take_turns) {
  device::gate* const one[] = {gates[0].get()};
  request_board board(one);
  constexpr std::size_t threads = request_board::slot_count + 40;
  std::vector<std::thread> faulting;
  for (std::size_t t = 0; t < threads; ++t)
    faulting.emplace_back(
        [&board, t] { EXPECT_EQ(board.ask(0, reinterpret_cast<std::byte*>(t), false), fault_verdict::retry); });

  // No request is answered before all slots are full; afterwards the waiting threads must get slots too.
  std::vector<request*> taken;
  while (taken.size() < request_board::slot_count) {
    board.take(0, taken);
    std::this_thread::yield();
  }
  EXPECT_EQ(taken.size(), request_board::slot_count);
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), request_board::slot_count);
  std::size_t done = 0;
  while (done < threads) {
    for (request* r : taken) r->answer(fault_verdict::retry);
    done += taken.size();
    taken.clear();
    board.take(0, taken);
    std::this_thread::yield();
  }
  for (std::thread& t : faulting) t.join();
}

thread_local sigjmp_buf out_of_the_wait;
void jump_out(int /*signal*/) { siglongjmp(out_of_the_wait, 1); }

/// Threads that leave the wait for an answer by a long jump from a signal handler, after the lane has taken their
/// request.
class left_request : public request_board_test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_handler = jump_out;
    ::sigaction(SIGUSR1, &action, nullptr);
  }

  /// Called by the thread that posts a request.
  void ask_and_leave(std::uintptr_t wish) {
    if (sigsetjmp(out_of_the_wait, 1) == 0) {
      board.ask(0, reinterpret_cast<std::byte*>(wish), false);
      ADD_FAILURE() << "nobody answered " << wish;
    }
  }
  /// Called by the lane: takes a request, then makes its thread leave the wait.
  void send_away(pthread_t thread) {
    const std::size_t before = taken.size();
    while (taken.size() == before) board.take(0, taken);
    ::pthread_kill(thread, SIGUSR1);
  }
  void answer_all() {
    for (request* r : taken) r->answer(r->write() ? fault_verdict::retry : fault_verdict::not_ours);
    taken.clear();
  }
  /// Expects an answer to a request of a thread that may find no free slot at first.
  void expect_an_answer() {
    std::atomic<int> answer{-1};
    std::thread asking([&] { answer = board.ask(0, nullptr, true) == fault_verdict::retry ? 1 : 0; });
    while (answer == -1) {
      board.take(0, taken);
      answer_all();
    }
    asking.join();
    EXPECT_EQ(answer, 1);
  }

  static constexpr std::size_t many = request_board::slot_count + 100;
  device::gate* const only[1] = {gates[0].get()};
  request_board board{only};
  std::vector<request*> taken;
};

TEST_F(left_request, is_taken_back_by_the_next_wish_of_its_thread) {
  std::thread asking([&] {
    for (std::size_t n = 0; n < many; ++n) ask_and_leave(n);
  });
  for (std::size_t n = 0; n < many; ++n) {
    send_away(asking.native_handle());
    if (n % 300 == 299) answer_all();
  }
  asking.join();
  expect_an_answer();
}

TEST_F(left_request, is_taken_back_when_its_thread_has_ended) {
  for (std::size_t n = 0; n < many; ++n) {
    std::thread asking([&] { ask_and_leave(n); });
    send_away(asking.native_handle());
    asking.join();
    answer_all();
  }
  expect_an_answer();
}

TEST(awake_seats, are_free_again_when_they_are_left_or_their_time_is_over) {
  using namespace std::chrono_literals;
  awake_seats seats;
  const awake_seats::clock::time_point now{100s};
  auto* const first = seats.take(2, now, now + 5s);
  auto* const second = seats.take(2, now, now + 10s);
  ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
  EXPECT_EQ(seats.take(2, now, now + 5s), nullptr);
  EXPECT_EQ(seats.take(2, now + 6s, now + 20s), first) << "the seat is free when its time is over";
  awake_seats::leave(*first, now + 5s);
  EXPECT_EQ(seats.take(2, now + 7s, now + 20s), nullptr)
      << "the late leave() does not free the seat, which another thread has now";
  awake_seats::leave(*second, now + 10s);
  EXPECT_EQ(seats.take(2, now + 7s, now + 20s), second);
  EXPECT_EQ(seats.take(0, now, now), nullptr);
}

}  // namespace
}  // namespace hpe::fault
