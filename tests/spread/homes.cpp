// In a program that was written for one device, all arrays begin on this device. hpe distributes arrays if launches
// gain by that, and moves them back if launches lose by it. Measured times decide, not predictions.

#include <gtest/gtest.h>

#include <functional>

#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

constexpr std::uint32_t devices = 2;

/// sums(out, in, n): each thread adds the elements of `in` whose index, modulo the block size, is the thread's index in
/// its block.
constexpr const char* sums_kernel = R"(
.visible .entry sums(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d0, %d2; mov.u32 %r5, 0;
LOOP: mul.wide.u32 %d3, %r3, 4; add.s64 %d3, %d1, %d3; ld.global.u32 %r6, [%d3]; add.u32 %r5, %r5, %r6;
  add.u32 %r3, %r3, %r2; setp.lt.u32 %p, %r3, %r0; @%p bra LOOP;
  st.global.u32 [%d2], %r5; ret;
}
)";

class Homes : public testing::Test {
 protected:
  static constexpr std::uint64_t count = gib / 4;
  std::shared_ptr<const ptx::program> program_ = ptx::parse({std::string(scale_kernel) + sums_kernel});
  const kernel_model scale_{program_, "scale"};
  program_on on_{devices};
  kernel_array& a_ = on_.allocate(count * 4, true);
  planner planner_{machine_of_program(), {}, when_planned::in_time};

  static machine machine_of_program() {
    machine m = program_on::machine_of(devices);
    m.alone = 0;
    m.moves_empty_arrays_free = false;
    return m;
  }
  [[nodiscard]] bool is_home() const { return a_.homes == std::vector<home_run>{{0, a_.bytes, 0}}; }
  void come_home() {
    a_.homes = {{0, a_.bytes, 0}};
    ++a_.version;
  }
  /// The price of moving half of the array.
  [[nodiscard]] double price() const {
    return planner_.rates().moves.seconds({1 + 2 * devices, static_cast<double>(a_.bytes) / 2});
  }

  struct sum {
    int spread = 0, moves = 0;
    double seconds = 0;  // total time of launches and moves
  };
  /// Launches the kernel several times; seconds(is_spread) is the time that a launch takes.
  sum launch(int launches, const std::function<double(bool)>& seconds, int n = count) {
    sum all;
    for (int number = 0; number < launches; ++number) {
      program_on::arguments arguments(*program_->find_kernel("scale"));
      arguments << a_ << (std::uint64_t{count} - static_cast<std::uint64_t>(number % 5)) << static_cast<float>(number);
      const spread::launch l{{static_cast<std::uint32_t>(n / 256), 1, 1},
                             {256, 1, 1},
                             arguments.data(),
                             scale_.analysis().kernel->formals_size};
      const decision d = planner_.decide(scale_, l, program_on::arrays_of(scale_, arguments));
      const planner::measurement m = planner_.measured();
      if (d.gives_homes()) {
        EXPECT_EQ(m.record, nullptr) << "the time of the move does not count as time of the launch";
        ++all.moves;
        all.seconds += price();
      }
      program_on::move(scale_, arguments, d, devices);
      const double took = seconds(d.is_spread());
      if (m.record != nullptr) m.took(took);
      all.spread += d.is_spread() ? 1 : 0;
      all.seconds += took;
    }
    return all;
  }
};

TEST_F(Homes, ArraysStayForTheFirstTwoLaunches) {
  a_.is_empty = true;
  const sum first = launch(2, [](bool) { return 1.0; });
  EXPECT_EQ(first.spread, 0);
  EXPECT_EQ(first.moves, 0);
  EXPECT_TRUE(is_home());
}

// A launch is predicted to take 0.6 ms, and the move 6 ms. The measured launches take far longer.
TEST_F(Homes, LaunchesThatAreMeasuredToBeLongDealOutAtTheThird) {
  EXPECT_EQ(launch(3, [](bool spread) { return spread ? 0.05 : 0.1; }).moves, 1);
  EXPECT_FALSE(is_home());
  const sum later = launch(100, [](bool spread) { return spread ? 0.05 : 0.1; });
  EXPECT_EQ(later.moves, 0);
  EXPECT_GE(later.spread, 95) << "launches with other numbers count as launches of the same kernel and arrays";
}

TEST_F(Homes, TheFirstLaunchWhichLoadsCodeDoesNotCount) {
  int number = 0;
  const sum all = launch(20, [&](bool) { return ++number == 1 ? 0.5 : 1e-5; });
  EXPECT_EQ(all.moves, 0);
}

TEST_F(Homes, ArraysMoveWhenLaunchesHaveLostAsMuchAsTheMoveTakes) {
  const auto seconds = [](bool spread) { return spread ? 0.0005 : 0.001; };
  const sum all = launch(1000, seconds);
  EXPECT_EQ(all.moves, 1);
  EXPECT_LT(1000 - all.spread, 1.2 * price() / 0.0005);
  EXPECT_LT(all.seconds, 0.56);
}

// For example, a kernel that waits for the values that it loads is predicted to be faster on several devices, but is
// slower.
TEST_F(Homes, ArraysComeHomeOnceIfTheSpreadIsSlower) {
  const auto seconds = [](bool spread) { return spread ? 0.2 : 0.1; };
  const sum first = launch(100, seconds);
  EXPECT_TRUE(is_home());
  EXPECT_EQ(first.moves, 2);
  EXPECT_LE(first.spread, 4);
  const sum later = launch(5000, seconds);
  EXPECT_GE(later.spread, 2) << "the spread is tried again";
  EXPECT_LE(later.seconds, 1.015 * 5000 * 0.1) << "tries take at most 1 % of the time, and the last try may take more";
}

TEST_F(Homes, ATryFindsOutThatTheSpreadIsFasterNow) {
  launch(100, [](bool spread) { return spread ? 0.2 : 0.1; });
  ASSERT_TRUE(is_home());
  launch(2000, [](bool spread) { return spread ? 0.05 : 0.1; });
  EXPECT_FALSE(is_home());
  EXPECT_GE(launch(100, [](bool spread) { return spread ? 0.05 : 0.1; }).spread, 95);
}

TEST_F(Homes, LaunchesThatNoPlanCanSpreadBringAnArrayHome) {
  launch(3, [](bool spread) { return spread ? 0.05 : 0.1; });
  ASSERT_FALSE(is_home());
  int stayed = 0;
  const array_placement* home = nullptr;
  for (; home == nullptr; ++stayed) {
    ASSERT_LT(stayed, 20);
    home = planner_.stays(a_);
  }
  EXPECT_GT(stayed, 1);
  ASSERT_EQ(home->how, array_placement::kind::one);
  ASSERT_EQ(home->home, 0);
  come_home();
  EXPECT_EQ(planner_.stays(a_), nullptr);
}

TEST_F(Homes, LaunchesThatDisagreeDoNotMoveAnArrayToAndFro) {
  int moves = 0;
  for (int n = 0; n < 1000; ++n) {
    moves += launch(1, [](bool spread) { return spread ? 0.0005 : 0.001; }).moves;
    if (planner_.stays(a_) == nullptr) continue;
    come_home();
    ++moves;
  }
  EXPECT_LE(moves, 2);
}

// If the kernel is spread, each of its launches gains more time than the other launches lose.
TEST_F(Homes, AnArrayStaysDealtOutForTheKernelThatGainsMost) {
  int home = 0;
  for (int n = 0; n < 1000; ++n) {
    launch(1, [](bool spread) { return spread ? 0.05 : 0.1; });
    if (planner_.stays(a_) == nullptr) continue;
    come_home();
    ++home;
  }
  EXPECT_EQ(home, 0);
  EXPECT_FALSE(is_home());
}

TEST_F(Homes, AReturnThatDidNotHappenIsNotAskedForAgain) {
  launch(3, [](bool spread) { return spread ? 0.05 : 0.1; });
  int asked = 0;
  for (int n = 0; n < 100; ++n) asked += planner_.stays(a_) != nullptr ? 1 : 0;
  EXPECT_EQ(asked, 1);
  ++a_.version;
  for (int n = 0; n < 100; ++n) asked += planner_.stays(a_) != nullptr ? 1 : 0;
  EXPECT_EQ(asked, 2) << "the array has changed";
}

/// Returns the number of the launch that distributes the array. On one device, each launch takes 1 ms.
int first_spread(const std::function<bool()>& launch) {
  for (int number = 1; number <= 1000; ++number)
    if (launch()) return number;
  return 0;
}

TEST_F(Homes, CheapMovesComeSoonAndDearOnesLate) {
  const auto seconds = [](bool spread) { return spread ? 0.0005 : 0.001; };
  const auto one_launch = [&] { return launch(1, seconds).moves == 1; };
  const move_work half{1 + 2 * devices, static_cast<double>(a_.bytes) / 2};
  for (int n = 0; n < 20; ++n) planner_.moved(half, 0.0002);
  EXPECT_EQ(first_spread(one_launch), 3);
  come_home();
  for (int n = 0; n < 20; ++n) planner_.moved(half, 0.1);
  const int late = first_spread(one_launch);
  EXPECT_GT(late, 150) << "each launch loses 0.5 ms";
  EXPECT_LT(late, 250);
}

// After each refusal, the launches must lose twice as much before hpe compares the kernels again. A move ends this.
TEST_F(Homes, AMoveThatAnotherKernelPreventedForLongIsCheapAgainAfterTheNextMove) {
  const auto seconds = [](bool spread) { return spread ? 0.0005 : 0.001; };
  const auto one_launch = [&] { return launch(1, seconds).moves == 1; };
  const int usual = first_spread(one_launch);
  ASSERT_GT(usual, 0);
  come_home();
  a_.may_replicate = false;
  const kernel_model sums(program_, "sums");
  kernel_array& out = on_.allocate(granule, true);
  const auto launch_sums = [&] {
    program_on::arguments arguments(*program_->find_kernel("sums"));
    arguments << out << a_ << static_cast<int>(count);
    const spread::launch l{{8, 1, 1}, {256, 1, 1}, arguments.data(), sums.analysis().kernel->formals_size};
    EXPECT_FALSE(planner_.decide(sums, l, program_on::arrays_of(sums, arguments)).gives_homes());
  };
  for (int n = 0; n < 20 * usual; ++n) {
    launch_sums();
    ASSERT_FALSE(one_launch()) << "the other kernel loses more";
  }
  planner_.forget(sums);
  const int late = first_spread(one_launch);
  EXPECT_GT(late, 2 * usual);
  come_home();
  const int again = first_spread(one_launch);
  EXPECT_GT(again, 0);
  EXPECT_LT(again, 2 * usual);
}

TEST_F(Homes, OneMeasuredMoveChangesThePriceOfTheNext) {
  const double before = price();
  const move_work half{1 + 2 * devices, static_cast<double>(a_.bytes) / 2};
  planner_.moved(half, 3 * before);
  EXPECT_NEAR(price(), 3 * before, 0.5 * before);
  planner_.moved(half, 1e3);
  EXPECT_LT(price(), 12 * before) << "one stall of the machine hardly changes the price";
}

TEST(MovePrice, TellsRangesFromBytes) {
  move_price p(1e-4, 1e-11);
  const move_work small{5, 4e6}, large{5, 4e9};
  const auto seconds = [](const move_work& w) { return w.ranges * 3e-4 + w.bytes * 2e-12; };
  for (int n = 0; n < 20; ++n) {
    p.took(small, seconds(small));
    p.took(large, seconds(large));
  }
  for (const move_work& w : {small, large, move_work{300, 1e9}})
    EXPECT_NEAR(p.seconds(w), seconds(w), 0.05 * seconds(w));
}

TEST(MovePrice, IsReadAsItWasWritten) {
  move_price p(1e-4, 1e-11);
  p.took({5, 4e9}, 0.02);
  const auto read = move_price::from_text(p.as_text());
  ASSERT_TRUE(read);
  EXPECT_NEAR(read->seconds({1, 0}), p.seconds({1, 0}), 1e-9);
  EXPECT_NEAR(read->seconds({0, 1e9}), p.seconds({0, 1e9}), 1e-6);
}

TEST(MovePrice, StaysThatOfAMachine) {
  move_price cheap(1e-4, 1e-11), dear(1e-4, 1e-11);
  for (int n = 0; n < 100; ++n) {
    cheap.took({5, 4e9}, 1e-9);
    dear.took({5, 4e9}, 1e9);
  }
  for (const move_price& p : {cheap, dear}) EXPECT_TRUE(move_price::from_text(p.as_text())) << p.as_text();
  dear.took({5, 4e9}, 1e-3);  // the price still adapts to measurements
  EXPECT_LT(dear.seconds({5, 4e9}), 0.6 * (5 * 0.1 + 4e9 * 1e-8));
}

TEST(MovePrice, IsNearWithinATenth) {
  const move_price p(1e-4, 1e-11);
  EXPECT_TRUE(p.is_near({1.05e-4, 0.95e-11}));
  EXPECT_FALSE(p.is_near({1.2e-4, 1e-11}));
  EXPECT_FALSE(p.is_near({1e-4, 0.8e-11}));
}

TEST(MovePrice, AMalformedTextIsIgnored) {
  for (const char* text : {"", "1e-4", "1e-4 many", "0 1e-11", "-1e-4 1e-11", "1e-4 nan", "inf 1e-11", "1e-4 1e-11 5",
                           "50 1e-11", "1e-4 1"})
    EXPECT_FALSE(move_price::from_text(text)) << text;
}

TEST(MovePrice, CountsTheRangesThatAMoveMaps) {
  kernel_array a;
  a.bytes = 8 * granule;
  a.homes = {{0, a.bytes, 0}};
  const auto work = [&](const std::vector<home_run>& to) { return work_of_move(a, to); };
  EXPECT_TRUE(work(a.homes).none());
  EXPECT_EQ(work({{0, a.bytes, 1}}).ranges, 3);
  EXPECT_EQ(work({{0, a.bytes, 1}}).bytes, static_cast<double>(a.bytes));
  const std::vector<home_run> halves{{0, a.bytes / 2, 0}, {a.bytes / 2, a.bytes, 1}};
  EXPECT_EQ(work(halves).ranges, 5);
  EXPECT_EQ(work(halves).bytes, static_cast<double>(a.bytes) / 2);
  a.homes = halves;
  EXPECT_EQ(work({{0, a.bytes, 0}}).ranges, 3) << "the half that is on the right device stays there";
}

TEST_F(Homes, MemoryThatCannotMoveStays) {
  kernel_array fixed = a_;
  fixed.granule = 0;
  fixed.homes = {{0, a_.bytes / 2, 0}, {a_.bytes / 2, a_.bytes, 1}};
  for (int n = 0; n < 100; ++n) ASSERT_EQ(planner_.stays(fixed), nullptr);
}

}  // namespace
}  // namespace hpe::spread::test
