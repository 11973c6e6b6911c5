#include "runtime/fault/request_board.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/device/layout.h"

namespace hpe::fault {
namespace {

class request_board_test : public testing::Test {
 protected:
  /// A lane that answers: even addresses may try again, odd ones are not ours.
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
          r->answer(wish % 2 == 0 ? verdict::retry : verdict::not_ours);
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
        const verdict v = board.ask(wish / 2 % 2, reinterpret_cast<std::byte*>(wish), wish % 3 == 0);
        ASSERT_EQ(v, wish % 2 == 0 ? verdict::retry : verdict::not_ours);
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
        [&board, t] { EXPECT_EQ(board.ask(0, reinterpret_cast<std::byte*>(t), false), verdict::retry); });

  // Nobody is answered before all slots are full; the others must then come too.
  std::vector<request*> taken;
  while (taken.size() < request_board::slot_count) {
    board.take(0, taken);
    std::this_thread::yield();
  }
  EXPECT_EQ(taken.size(), request_board::slot_count);
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), request_board::slot_count);
  std::size_t done = 0;
  while (done < threads) {
    for (request* r : taken) r->answer(verdict::retry);
    done += taken.size();
    taken.clear();
    board.take(0, taken);
    std::this_thread::yield();
  }
  for (std::thread& t : faulting) t.join();
}

}  // namespace
}  // namespace hpe::fault
