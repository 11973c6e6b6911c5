// Tests of planning: similar launches share one plan, planning takes at most its share of the run time, and measured
// times correct the predictions.

#include <gtest/gtest.h>

#include <thread>

#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

TEST(TimeBudget, AllowsItsShareOfTheTimeSinceTheFirstLaunch) {
  time_budget b(0.02);
  EXPECT_FALSE(b.allows(0, 5)) << "nothing has begun";
  b.begin(5);
  b.begin(7);  // at a later launch
  EXPECT_FALSE(b.allows(0.002, 5.09));
  EXPECT_TRUE(b.allows(0.002, 5.11));
  b.spend(0.002);
  EXPECT_FALSE(b.allows(0.002, 5.11));
  EXPECT_TRUE(b.allows(0.002, 5.21));
  EXPECT_EQ(b.spent(), 0.002);
}

TEST(TimeBudget, AllowsMoreByTheAllowance) {
  time_budget b(0.02);
  EXPECT_FALSE(b.allows(0, 5, 0.01)) << "nothing has begun";
  b.begin(5);
  EXPECT_TRUE(b.allows(0.004, 5, 0.005));
  b.spend(0.004);
  EXPECT_FALSE(b.allows(0.004, 5.1, 0.005));
  EXPECT_TRUE(b.allows(0.004, 5.2, 0.005));
  EXPECT_FALSE(b.allows(0.004, 5.2)) << "without the allowance, the share must also cover earlier work";
}

constexpr way_record::prediction forty{0.158, 0.040};

/// Records `count` launches. Each launch takes `spread` or `alone` seconds, as the record chooses. Returns the number
/// of spread launches.
int launches(way_record& r, int count, double alone, double spread, double work = 1) {
  int spreads = 0;
  for (int n = 0; n < count; ++n) {
    const way_record::prediction p{forty.alone * work, forty.spread * work};
    const launch_way w = r.choose(p);
    spreads += w == launch_way::spread ? 1 : 0;
    r.took(w, p, work * (w == launch_way::spread ? spread : alone));
  }
  return spreads;
}

// These times are those of a program that computes forces between bodies. Spread launches are predicted to be 3.97
// times as fast, but are 3.7 times as slow.
TEST(WayRecord, LeavesTheSlowerWayAtTheSecondLaunch) {
  way_record r;
  EXPECT_EQ(launches(r, 2, 0.158, 0.586), 1);
  EXPECT_EQ(launches(r, 300, 0.158, 0.586), 0);
  EXPECT_NEAR(r.expected(launch_way::spread, forty), 0.586, 1e-9);
  EXPECT_NEAR(r.expected(launch_way::alone, forty), 0.158, 1e-9);
}

TEST(WayRecord, TriesTheSlowerWayForOnePercentOfTheTime) {
  way_record r;
  launches(r, 2, 0.158, 0.586);
  const int tried = launches(r, 10000, 0.158, 0.586);
  EXPECT_GE(tried, 20);
  EXPECT_LE(tried * 0.586, 0.0101 * (10000 * 0.158 + tried * 0.586));
  // From here on, spread launches are faster (0.040 s instead of 0.158 s), so the record must choose them.
  EXPECT_GT(launches(r, 2000, 0.158, 0.040), 1000);
  EXPECT_EQ(launches(r, 10, 0.158, 0.040), 10);
}

TEST(WayRecord, KeepsTheFasterWay) {
  way_record r;
  const int spreads = launches(r, 10000, 0.158, 0.060);
  EXPECT_LT(spreads, 10000) << "the time on one device is measured too";
  EXPECT_LE((10000 - spreads) * 0.158, 0.0101 * (spreads * 0.060 + (10000 - spreads) * 0.158));
}

// The first spread launch is slow because it loads code and makes copies.
TEST(WayRecord, OneSlowLaunchTellsNothingUnlessItIsVerySlow) {
  way_record r;
  r.took(launch_way::alone, forty, 0.158);
  r.took(launch_way::spread, forty, 0.3);
  EXPECT_EQ(r.choose(forty), launch_way::spread);
  r.took(launch_way::spread, forty, 0.05);
  EXPECT_NEAR(r.expected(launch_way::spread, forty), 0.05, 1e-9);
  EXPECT_EQ(r.choose(forty), launch_way::spread);
}

TEST(WayRecord, CorrectsThePredictionOfLaunchesWithOtherWork) {
  way_record r;
  launches(r, 2, 0.158, 0.586);
  const way_record::prediction small{forty.alone / 100, forty.spread / 100};
  static_cast<void>(r.choose(small));  // a launch as short as this may be a trial
  EXPECT_EQ(r.choose(small), launch_way::alone);
  EXPECT_NEAR(r.expected(launch_way::spread, small), 0.00586, 1e-9);
}

TEST(WayRecord, MeasuresTheFirstLaunchesOfEachWayAndLaterOneInSixteen) {
  way_record r;
  for (const launch_way w : {launch_way::alone, launch_way::spread})
    for (int n = 0; n < 8; ++n) {
      EXPECT_TRUE(r.is_due(w));
      EXPECT_EQ(r.is_on_trial(w), n < (w == launch_way::alone ? 1 : 2)) << "0.158 s on one device tell enough";
      r.took(w, forty, forty.of(w));
    }
  for (int times = 0; times < 3; ++times) {
    for (int n = 0; n < 15; ++n) EXPECT_FALSE(r.is_due(launch_way::spread));
    EXPECT_TRUE(r.is_due(launch_way::spread));
    r.took(launch_way::spread, forty, forty.spread);
  }
}

TEST(WayRecord, TellsWhatSpreadLaunchesSave) {
  way_record r;
  // When the arrays are distributed, a launch on one device would be slower, but that is no gain of spreading.
  constexpr way_record::prediction at_home{0.158, 0.040, 0.158}, distributed{0.9, 0.040, 0.158};
  EXPECT_EQ(r.took(launch_way::spread, at_home, 0.06), 0) << "the time on one device was never measured";
  EXPECT_EQ(r.took(launch_way::alone, at_home, 0.2), 0);
  EXPECT_NEAR(r.took(launch_way::spread, distributed, 0.06), 0.14, 1e-9);
  EXPECT_NEAR(r.took(launch_way::spread, distributed, 0.3), -0.1, 1e-9);
  for (int n = 0; n < 5; ++n) r.took(launch_way::spread, distributed, 0.06);
  for (int n = 0; n < 15; ++n) ASSERT_FALSE(r.is_due(launch_way::spread));
  EXPECT_NEAR(r.took(launch_way::spread, distributed, 0.06), 16 * 0.14, 1e-9)
      << "launches that were not measured also save time";
}

TEST(WayRecord, TheTimeOfLaunchesThatAreNotMeasuredAllowsTriesToo) {
  way_record r;
  launches(r, 2, 0.158, 0.586);
  int tried = 0, measured = 0;
  for (int n = 0; n < 10000; ++n) {
    const launch_way w = r.choose(forty);
    tried += w == launch_way::spread ? 1 : 0;
    if (!r.is_due(w)) continue;
    ++measured;
    r.took(w, forty, w == launch_way::spread ? 0.586 : 0.158);
  }
  EXPECT_LT(measured, 10000 / 16 + 50);
  EXPECT_GE(tried, 20);
  EXPECT_LE(tried * 0.586, 0.012 * (10000 * 0.158));
}

/// rows(a, b, n, t): a[t * n + i] += 1 for the global index i.
constexpr const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 a, .param .u64 b, .param .u32 n, .param .u32 t) {
  .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;
  ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u32 %r0, [n]; ld.param.u32 %r1, [t];
  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4; add.s32 %r5, %r5, %r1;
  setp.ge.s32 %p, %r5, %r0; @%p bra END;
  mul.wide.s32 %d2, %r5, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
  ld.global.u32 %r6, [%d4]; add.u32 %r6, %r6, 1; st.global.u32 [%d3], %r6;
END: ret;
}
)";

/// walks(a): the threads of a block count from a[block] to 0. looks(a): a[i] = a[a[i]] for the global index i.
constexpr const char* text_of_loops = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry walks(.param .u64 a) {
  .reg .b32 %r<3>; .reg .b64 %d<3>; .reg .pred %p;
  ld.param.u64 %d0, [a]; cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %ctaid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1; ld.global.u32 %r1, [%d2];
LOOP: mad.lo.u32 %r1, %r1, 1664525, 1013904223; setp.ne.u32 %p, %r1, 0; @%p bra LOOP;
  st.global.u32 [%d2], %r1;
  ret;
}
.visible .entry looks(.param .u64 a) {
  .reg .b32 %r<6>; .reg .b64 %d<5>;
  ld.param.u64 %d0, [a]; cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r0, %r1, %r2;
  mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %d0, %d1; ld.global.u32 %r4, [%d2]; and.b32 %r4, %r4, 268435455;
  mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d0, %d3; ld.global.u32 %r5, [%d4]; st.global.u32 [%d2], %r5;
  ret;
}
)";

class Planning : public testing::Test {
 protected:
  static constexpr int count = 1 << 28;
  const dimension grid_{count / 256, 1, 1}, block_{256, 1, 1};
  std::shared_ptr<const ptx::program> program_ = ptx::parse({text});
  const kernel_model rows_{program_, "rows"};
  // Each call of the clock adds a millisecond, so that planning takes some time.
  double time_ = 0, look_ = 1e-3;
  program_on on_{2};

  planner made(when_planned when) {
    return planner(program_on::machine_of(2), {}, when, [this] { return time_ += look_; });
  }
  [[nodiscard]] program_on::arguments with(const kernel_array& a, const kernel_array& b, int t = 0,
                                           int n = count) const {
    program_on::arguments all(*program_->find_kernel("rows"));
    all << a << b << n << t;
    return all;
  }
  const decision& decide(planner& p, const program_on::arguments& a, dimension grid,
                         const start_cost* start = nullptr) {
    const launch l{grid, block_, a.data(), rows_.analysis().kernel->formals_size};
    const std::vector<const kernel_array*> arrays = program_on::arrays_of(rows_, a);
    return p.decide(rows_, l, arrays, start);
  }
  const decision& decide(planner& p, const program_on::arguments& a) { return decide(p, a, grid_); }
  /// Computes the plans that the planner has asked for. Returns how many.
  static std::size_t compute(planner& p) {
    const planner::requests missing = p.take_requests();
    for (const auto& each : missing) {
      each->compute();
      p.add(*each);
    }
    return missing.size();
  }

  std::shared_ptr<const ptx::program> loops_ = ptx::parse({text_of_loops});
  const kernel_model walks_{loops_, "walks"}, looks_{loops_, "looks"};
  const decision& launch_loop(planner& p, const kernel_model& kernel, const kernel_array& a, std::uint32_t blocks) {
    program_on::arguments all(*kernel.analysis().kernel);
    all << a;
    const launch l{{blocks, 1, 1}, block_, all.data(), kernel.analysis().kernel->formals_size};
    const std::vector<const kernel_array*> arrays = program_on::arrays_of(kernel, all);
    return p.decide(kernel, l, arrays);
  }
  const decision& walk(planner& p, const kernel_array& a) { return launch_loop(p, walks_, a, 1024); }
  const decision& look(planner& p, const kernel_array& a) { return launch_loop(p, looks_, a, grid_[0]); }
};

TEST_F(Planning, TheFirstPlansAreMadeAtOnce) {
  planner p = made(when_planned::in_time);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  EXPECT_TRUE(decide(p, with(a, b)).is_spread());
  EXPECT_GT(p.planning_seconds(), 0);
  EXPECT_LE(p.planning_seconds(), planner::allowance);
}

TEST_F(Planning, AnotherThreadMayComputeThePlans) {
  planner p = made(when_planned::elsewhere);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(decide(p, with(a, b)).is_spread());
  EXPECT_EQ(p.planning_seconds(), 0);
  const planner::requests missing = p.take_requests();
  ASSERT_EQ(missing.size(), 1U) << "one request for one plan";
  EXPECT_EQ(&missing[0]->kernel(), &rows_);
  std::thread([&] { missing[0]->compute(); }).join();
  EXPECT_FALSE(decide(p, with(a, b)).is_spread());
  ASSERT_TRUE(p.wants(*missing[0]));
  p.add(*missing[0]);
  EXPECT_GT(p.planning_seconds(), 0);
  const decision now = decide(p, with(a, b));
  EXPECT_TRUE(now.is_spread());
  planner at_once = made(when_planned::at_once);
  const decision& same = decide(at_once, with(a, b));
  EXPECT_EQ(now.how.parts, same.how.parts);
  EXPECT_EQ(now.reason, same.reason);
  EXPECT_TRUE(p.take_requests().empty());
}

// The planner does not know how often the kernel's loop repeats.
TEST_F(Planning, AKernelThatTakesLongerThanPredictedIsSpread) {
  planner p = made(when_planned::elsewhere);
  kernel_array& a = on_.allocate(granule, true);
  walk(p, a);
  EXPECT_TRUE(p.is_early()) << "its plan is not computed yet";
  EXPECT_FALSE(p.lacks_plan()) << "its plan is being computed";
  ASSERT_EQ(compute(p), 1U);
  for (int n = 0; n < 2; ++n) {
    const decision& d = walk(p, a);
    EXPECT_FALSE(d.is_spread());
    EXPECT_NE(d.reason.find("short: predicted"), std::string::npos) << d.reason;
    ASSERT_NE(p.measured().record, nullptr);
    EXPECT_TRUE(p.is_early()) << "its time is not measured yet";
    EXPECT_FALSE(p.measured().is_on_trial) << "the caller need not wait for a launch that may be short";
    p.measured().took(0.01);
  }
  EXPECT_FALSE(walk(p, a).is_spread());
  ASSERT_EQ(compute(p), 1U) << "it is planned again with the measured time";
  EXPECT_TRUE(walk(p, a).is_spread());
  EXPECT_EQ(compute(p), 0U);
}

TEST_F(Planning, ShortLaunchesAreMeasuredTwiceAndStay) {
  planner p = made(when_planned::elsewhere);
  kernel_array& a = on_.allocate(granule, true);
  walk(p, a);
  ASSERT_EQ(compute(p), 1U);
  int measured = 0;
  for (int n = 0; n < 100; ++n) {
    EXPECT_FALSE(walk(p, a).is_spread());
    if (p.measured().record == nullptr) continue;
    ++measured;
    p.measured().took(2e-5);
  }
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(compute(p), 0U);
  EXPECT_FALSE(p.is_early());
}

// As long as the planner cannot tell how much another kernel would lose, it does not distribute the arrays.
TEST_F(Planning, ArraysOfALaunchWithoutAPlanStay) {
  machine m = program_on::machine_of(2);
  m.alone = 0;
  m.moves_empty_arrays_free = false;
  planner p(m, {}, when_planned::elsewhere);
  kernel_array &a = on_.allocate(4ULL * count, true), &b = on_.allocate(4ULL * count, true);
  decide(p, with(a, b));
  ASSERT_EQ(compute(p), 1U);
  const auto moves = [&] { return decide(p, with(a, b)).gives_homes(); };
  for (int n = 0; n < 1000; ++n) {
    walk(p, b);  // nobody computes its plan
    ASSERT_FALSE(moves());
  }
  ASSERT_EQ(compute(p), 1U);
  walk(p, b);
  int launches = 1;
  for (; !moves(); ++launches) ASSERT_LT(launches, 10000);
  EXPECT_GT(launches, 2000) << "the last launch without a plan was a short time ago";
}

// `looks` reads anywhere in the array, so it loses more if the array is distributed than `rows` gains.
TEST_F(Planning, ArraysStayIfAnotherKernelWouldLoseMore) {
  machine m = program_on::machine_of(2);
  m.alone = 0;
  m.moves_empty_arrays_free = false;
  planner p(m, {}, when_planned::elsewhere);
  kernel_array &a = on_.allocate(4ULL * count, true), &b = on_.allocate(4ULL * count, true);
  b.may_replicate = false;
  decide(p, with(a, b));
  look(p, b);
  ASSERT_EQ(compute(p), 2U);
  const auto moves = [&] { return decide(p, with(a, b)).gives_homes(); };
  for (int n = 0; n < 5000; ++n) {
    EXPECT_FALSE(look(p, b).gives_homes());
    ASSERT_FALSE(moves());
  }
  int launches = 1;
  for (; !moves(); ++launches) ASSERT_LT(launches, 50000);
  EXPECT_GT(launches, 1000) << "`looks` was among the last launches";
}

TEST_F(Planning, ArraysMoveAfterMeasuredLaunches) {
  machine m = program_on::machine_of(2);
  m.alone = 0;
  m.moves_empty_arrays_free = false;
  m.moves = {1e-9, 1e-15};
  planner p(m, {}, when_planned::elsewhere);
  kernel_array &a = on_.allocate(4ULL * count, true), &b = on_.allocate(4ULL * count, true);
  decide(p, with(a, b));
  ASSERT_EQ(compute(p), 1U);
  on_.allocate(granule);
  for (int n = 0; n < 2; ++n) EXPECT_FALSE(decide(p, with(a, b)).gives_homes());
}

// The kernel's memory may then belong to another kernel.
TEST_F(Planning, PlansOfForgottenKernelsAreNotKept) {
  planner p = made(when_planned::elsewhere);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  decide(p, with(a, b));
  const planner::requests before = p.take_requests();
  ASSERT_EQ(before.size(), 1U);
  p.forget(rows_);
  EXPECT_FALSE(p.wants(*before[0]));
  decide(p, with(a, b));
  EXPECT_FALSE(p.wants(*before[0])) << "this kernel only has the same address";
  before[0]->compute();
  p.add(*before[0]);
  EXPECT_FALSE(decide(p, with(a, b)).is_spread());
  EXPECT_EQ(p.take_requests().size(), 1U);
}

TEST_F(Planning, ALaunchWithoutAPlanRunsOnOneDeviceUntilThereIsTime) {
  planner p = made(when_planned::in_time);
  // Arrays of another size need another plan.
  std::uint64_t bytes = 4ULL * count;
  const auto other = [&] { return &on_.allocate(bytes += std::uint64_t{2} << 20U); };
  const kernel_array *a = other(), *b = other();
  const auto decide_again = [&]() -> const decision& { return decide(p, with(*a, *b)); };
  for (int n = 0; decide_again().is_spread(); a = other(), b = other())
    ASSERT_LT(++n, 100000) << "the planner must reach the end of the allowance";
  const double spent = p.planning_seconds(), first = time_;
  EXPECT_LE(spent, planner::allowance + planner::share * time_);
  look_ = 0;
  const decision without = decide_again();
  EXPECT_TRUE(p.lacks_plan());
  look_ = 1e-3;
  EXPECT_FALSE(without.is_spread());
  EXPECT_EQ(without.how.parts.at(0).blocks(), grid_[0]);
  EXPECT_NE(without.reason.find("not planned yet"), std::string::npos) << without.reason;
  EXPECT_EQ(p.measured().record, nullptr);
  EXPECT_EQ(p.planning_seconds(), spent);
  while (!decide_again().is_spread()) ASSERT_LT(time_, first + 1);
  EXPECT_FALSE(p.lacks_plan());
  EXPECT_GT(p.planning_seconds(), spent);
  EXPECT_LE(p.planning_seconds(), planner::allowance + planner::share * time_);
}

TEST_F(Planning, PlanningTakesItsShareWhateverIsLaunched) {
  planner p = made(when_planned::in_time);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  int spread = 0;
  for (int n = 0; n < 3000; ++n) {  // each launch has another shape
    const int t = n * 256;
    spread += decide(p, with(a, b, t), {grid_[0] - static_cast<unsigned>(n), 1, 1}).is_spread() ? 1 : 0;
    ASSERT_LE(p.planning_seconds(), planner::allowance + planner::share * time_ + 1e-3)
        << "the limit may be exceeded by less than the time of one plan";
  }
  EXPECT_GT(spread, 2500) << "a shape without a plan is cut like another shape of about the same size";
}

TEST_F(Planning, OtherNumbersNeedNoPlan) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  EXPECT_TRUE(decide(p, with(a, b)).is_spread());
  const double once = p.planning_seconds();
  for (int t = 1; t < 1000; ++t) {
    EXPECT_TRUE(decide(p, with(a, b, t)).is_spread());
    ASSERT_LE(p.planning_seconds(), once + planner::share * time_);
  }
  // After enough time, the plan is compared with the parameters again. With the new parameters, nearly all threads have
  // nothing to do.
  const auto bytes = [](const decision& d) { return d.alternatives.front().local_bytes; };
  const double before = bytes(decide(p, with(a, b)));
  time_ += 10;
  for (int n = 0; n < 10000; ++n) decide(p, with(a, b, 0, 4096));
  EXPECT_LT(bytes(decide(p, with(a, b, 0, 4096))), before / 2);
}

// The kernel runs with 40 grids in turn, and with another number in each round.
TEST_F(Planning, OtherNumbersNeedFewPlansIfTheGridsRepeat) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  constexpr int rounds = 64;
  const auto launch_all = [&](int round) {
    for (unsigned shape = 0; shape < 40; ++shape) {
      time_ += 1;  // there is time for each plan
      decide(p, with(a, b, round), {grid_[0] - shape, 1, 1});
    }
  };
  launch_all(0);
  const double once = p.planning_seconds();
  for (int round = 1; round < rounds; ++round) launch_all(round);
  EXPECT_LT(p.planning_seconds(), once * rounds / 4);
}

TEST_F(Planning, ArraysThatLieAlikeNeedNoOtherPlan) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count), &c = on_.allocate(4ULL * count);
  EXPECT_TRUE(decide(p, with(a, b)).is_spread());
  const double once = p.planning_seconds();
  EXPECT_TRUE(decide(p, with(b, a)).is_spread());
  EXPECT_TRUE(decide(p, with(a, c)).is_spread());
  for (int n = 0; n < 10; ++n) {
    ++c.version;  // like another allocation of the same size at the same address
    EXPECT_TRUE(decide(p, with(a, c)).is_spread());
  }
  p.forget(c.address);
  EXPECT_TRUE(decide(p, with(a, c)).is_spread());
  EXPECT_EQ(p.planning_seconds(), once);
  kernel_array& on_one = on_.allocate(4ULL * count, true);
  decide(p, with(a, on_one));
  EXPECT_GT(p.planning_seconds(), once);
}

// Launches after a move already have a plan: the plan for which the move was made.
TEST_F(Planning, AMoveNeedsNoOtherPlan) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count, true), &b = on_.allocate(4ULL * count, true);
  for (int t = 0;; ++t) {
    ASSERT_LT(t, 1000) << "the losses of launches with different numbers are added up";
    const decision d = decide(p, with(a, b, t));
    if (d.arrays.at(0).move_to.how == array_placement::kind::stay) continue;
    program_on::move(rows_, with(a, b), d, 2);
    break;
  }
  const double before = p.planning_seconds();
  const decision d = decide(p, with(a, b));
  EXPECT_TRUE(d.is_spread());
  EXPECT_EQ(d.arrays.at(0).move_to.how, array_placement::kind::stay);
  EXPECT_EQ(p.planning_seconds(), before);
}

// Each launch loses about 1.3 ms on one device.
TEST_F(Planning, AKernelIsMadeReadyOnceItsLaunchesHaveLostAsMuch) {
  planner p = made(when_planned::at_once);
  kernel_array &dealt = on_.allocate(4ULL * count), &other = on_.allocate(4ULL * count);
  const start_cost cost{0.001, 0.1};
  int waited = 0;
  for (; !p.wants_start(); ++waited) {
    ASSERT_LT(waited, 1000);
    const decision& d = decide(p, with(dealt, other, waited), grid_, &cost);
    EXPECT_FALSE(d.is_spread());
    EXPECT_EQ(d.arrays.at(0).move_to.how, array_placement::kind::stay);
  }
  EXPECT_GT(waited, 50) << "the first kernel's cost includes the start of the process";
  EXPECT_FALSE(decide(p, with(dealt, other), grid_, &cost).is_spread()) << "the kernel is being prepared";
  EXPECT_TRUE(p.wants_start());
  EXPECT_TRUE(decide(p, with(dealt, other)).is_spread());
  EXPECT_FALSE(p.wants_start());
}

TEST_F(Planning, AKernelThatIsNotReadyMovesNoArrays) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count, true), &b = on_.allocate(4ULL * count, true);
  const start_cost never{1e9, 0};
  for (int t = 0; t < 1000; ++t) {
    const decision& d = decide(p, with(a, b, t), grid_, &never);
    ASSERT_FALSE(d.is_spread() || p.wants_start());
    ASSERT_EQ(d.arrays.at(0).move_to.how, array_placement::kind::stay);
  }
  for (int t = 0; decide(p, with(a, b, t)).arrays.at(0).move_to.how == array_placement::kind::stay; ++t)
    ASSERT_LT(t, 1000);
}

TEST_F(Planning, WhatWasMeasuredDecides) {
  planner p = made(when_planned::at_once);
  kernel_array &a = on_.allocate(4ULL * count), &b = on_.allocate(4ULL * count);
  int spread = 0, measured = 0;
  for (int t = 0; t < 100; ++t) {
    const bool is_spread = decide(p, with(a, b, t)).is_spread();
    spread += is_spread ? 1 : 0;
    const planner::measurement m = p.measured();
    if (m.record == nullptr) continue;  // the launch need not be measured
    ++measured;
    EXPECT_EQ(m.how, is_spread ? launch_way::spread : launch_way::alone);
    m.took(is_spread ? 1.0 : 0.01);
  }
  EXPECT_GE(measured, 9);
  EXPECT_LT(measured, 20);
  EXPECT_LE(spread, 2);
  EXPECT_NE(decide(p, with(a, b)).reason.find("were measured to be "), std::string::npos);
}

}  // namespace
}  // namespace hpe::spread::test
