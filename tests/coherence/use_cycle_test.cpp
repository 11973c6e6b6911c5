#include "runtime/coherence/use_cycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "tests/operator_new.h"

namespace {

std::size_t allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  return allocate_by_malloc(bytes, alignment);
}
// Not inlined, because g++ would then take free() for a mistake in operator delete.
[[gnu::noinline]] void release(void* p) noexcept { std::free(p); }

}  // namespace

namespace hpe::coherence {
namespace {

constexpr byte_range all{0, 100};

/// A step that uses region `number`.
void add(use_cycle& c, std::uint32_t number) {
  c.use(number, all);
  c.end_step();
}

void add(use_cycle& c, const std::vector<std::uint32_t>& numbers) {
  for (const std::uint32_t n : numbers) add(c, n);
}

std::uint64_t steps_until_use(use_cycle& c, std::uint32_t region, byte_range bytes) {
  use_cycle::next_use found{bytes};
  c.find_next_uses(region, std::span(&found, 1));
  return found.steps;
}

std::vector<std::uint32_t> numbers_from(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

TEST(use_cycle, a_sequence_that_does_not_repeat_is_no_cycle) {
  use_cycle c;
  EXPECT_EQ(c.period(), 0U);
  for (const std::uint32_t n : numbers_from(1, 20'000)) {
    add(c, n);
    ASSERT_EQ(c.period(), 0U) << n;
  }
}

TEST(use_cycle, a_cycle_is_known_after_two_periods) {
  for (const std::size_t period : {1, 2, 3, 7, 8, 9, 31, 100, 1000, 5000}) {
    use_cycle c;
    // The object chooses a period after 16 steps, and again after every few steps.
    for (std::size_t steps = 0; steps < std::max<std::size_t>(2 * period, period + 16); steps += period)
      add(c, numbers_from(1, period));
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(c.period(), period);
      add(c, numbers_from(1, period));
    }
  }
}

TEST(use_cycle, tells_the_uses_of_the_next_period_in_order) {
  use_cycle c;
  EXPECT_FALSE(c.upcoming());
  const auto period = numbers_from(1, 20);
  for (int n = 0; n < 3; ++n) add(c, period);
  for (const std::uint32_t n : period) {
    const auto use = c.upcoming();
    ASSERT_TRUE(use);
    EXPECT_EQ(use->region, n);
    EXPECT_EQ(use->bytes, all);
    EXPECT_TRUE(use->reads);
    EXPECT_EQ(use->steps, n);
    c.pass();
  }
  EXPECT_FALSE(c.upcoming()) << "only one period is predicted";
  c.use(1, all, false);
  c.end_step();
  ASSERT_TRUE(c.upcoming());
  EXPECT_EQ(c.upcoming()->region, 1U);
  EXPECT_FALSE(c.upcoming()->reads);
  EXPECT_EQ(c.upcoming()->steps, 20U);
  // Uses that have come are not upcoming, even if pass() has not passed them.
  add(c, {2, 3, 4});
  EXPECT_EQ(c.upcoming()->steps, 17U);
  add(c, numbers_from(5, 16));
  EXPECT_EQ(c.upcoming()->steps, 1U);
  add(c, {1, 2});
  EXPECT_EQ(c.upcoming()->region, 3U);
  EXPECT_EQ(c.upcoming()->steps, 1U);
}

TEST(use_cycle, tells_no_uses_once_most_predictions_are_wrong) {
  use_cycle c;
  for (int n = 0; n < 3; ++n) add(c, numbers_from(1, 20));
  ASSERT_TRUE(c.upcoming());
  std::mt19937 random(5);
  for (int n = 0; n < 40; ++n) add(c, static_cast<std::uint32_t>(1 + random() % 20));
  EXPECT_FALSE(c.upcoming());
}

TEST(use_cycle, tells_the_steps_until_the_next_use) {
  use_cycle c;
  for (int n = 0; n < 3; ++n) {
    add(c, {1, 2, 3, 4, 5, 6, 7, 8, 2, 10});
    c.use(11, {0, 10});
    c.use(11, {50, 60});
    c.end_step();
  }
  ASSERT_EQ(c.period(), 11U);
  EXPECT_EQ(steps_until_use(c, 1, all), 1U);
  EXPECT_EQ(steps_until_use(c, 2, all), 2U);
  EXPECT_EQ(steps_until_use(c, 8, all), 8U);
  EXPECT_EQ(steps_until_use(c, 11, {5, 20}), 11U);
  EXPECT_EQ(steps_until_use(c, 11, {10, 50}), 0U);
  EXPECT_EQ(steps_until_use(c, 12, all), 0U);
  add(c, {1, 2, 3});
  EXPECT_EQ(steps_until_use(c, 2, all), 6U) << "the other use in the period";
  EXPECT_EQ(steps_until_use(c, 1, {99, 200}), 9U);
  EXPECT_EQ(steps_until_use(c, 1, {100, 200}), 0U);
}

TEST(use_cycle, a_short_cycle_in_a_long_one_does_not_hide_it) {
  use_cycle c;
  for (int n = 0; n < 10; ++n) {
    for (int k = 0; k < 4; ++k) add(c, {1, 2, 3});
    add(c, {4, 5, 6, 7, 8});
  }
  EXPECT_EQ(c.period(), 17U);
  EXPECT_EQ(steps_until_use(c, 6, all), 15U);
}

// PyTorch places some arrays elsewhere in each training step.
TEST(use_cycle, a_cycle_in_which_steps_differ_is_known) {
  std::mt19937 random(4);
  use_cycle c;
  constexpr std::uint32_t period = 200;
  for (int n = 0; n < 20; ++n)
    for (std::uint32_t s = 1; s <= period; ++s) add(c, random() % 5 == 0 ? period + 1 + random() % 50 : s);
  ASSERT_EQ(c.period(), period);
  std::size_t right = 0;
  for (std::uint32_t s = 1; s <= period; ++s) right += steps_until_use(c, s, all) == s ? 1 : 0;
  EXPECT_GT(right, period * 7 / 10);
}

TEST(use_cycle, steps_that_come_earlier_or_later_do_not_end_the_cycle) {
  std::mt19937 random(5);
  use_cycle c;
  constexpr std::uint32_t period = 300;
  for (int n = 0; n < 20; ++n)
    for (std::uint32_t s = 1; s <= period; ++s) {
      add(c, s);
      if (random() % 100 == 0) add(c, 1000 + random() % 1000);
    }
  ASSERT_NE(c.period(), 0U);
  EXPECT_NEAR(static_cast<double>(steps_until_use(c, 150, all)), 150.0, 10.0);
}

TEST(use_cycle, a_step_less_does_not_end_the_cycle) {
  use_cycle c;
  for (int n = 0; n < 6; ++n) add(c, numbers_from(1, 300));
  for (int n = 0; n < 6; ++n)
    for (std::uint32_t s = 1; s <= 300; ++s) {
      if (n == 0 && s == 10) continue;
      add(c, s);
      ASSERT_NE(c.period(), 0U) << n << " " << s;
    }
}

TEST(use_cycle, a_use_that_is_late_is_the_next_one) {
  use_cycle c;
  for (int n = 0; n < 6; ++n) add(c, numbers_from(1, 300));
  add(c, numbers_from(1, 99));
  add(c, {1000, 1001, 1002});  // other steps
  ASSERT_EQ(c.period(), 300U);
  EXPECT_EQ(steps_until_use(c, 100, all), 1U);
  EXPECT_EQ(steps_until_use(c, 101, all), 1U);
  EXPECT_EQ(steps_until_use(c, 104, all), 2U);
  EXPECT_GT(steps_until_use(c, 99, all), 200U) << "used on time";
  add(c, numbers_from(100, 20));
  EXPECT_GT(steps_until_use(c, 101, all), 200U) << "used late";
}

TEST(use_cycle, work_that_comes_seldom_does_not_hide_the_cycle) {
  use_cycle c;
  std::uint64_t right = 0, steps = 0;
  for (int n = 0; n < 100; ++n) {
    add(c, numbers_from(1, 50));
    if (n % 40 == 39) add(c, numbers_from(100, 80));
    if (n < 20) continue;
    ++steps;
    right += c.period() == 50 ? 1 : 0;
  }
  EXPECT_GE(right, steps * 9 / 10);
}

TEST(use_cycle, many_ranges_of_a_region_are_found_in_one_pass) {
  std::mt19937 random(8);
  use_cycle c;
  constexpr std::uint64_t tiles = 3000;
  for (int n = 0; n < 3; ++n)
    for (std::uint64_t t = 0; t < tiles; ++t) {
      c.use(1, {t * 10, t * 10 + 10});
      c.end_step();
    }
  ASSERT_EQ(c.period(), tiles);
  std::vector<use_cycle::next_use> ranges;
  for (std::uint64_t t = 0; t < tiles; t += 1 + random() % 3) ranges.push_back({{t * 10 + 3, t * 10 + 10}});
  c.find_next_uses(1, ranges);
  for (const use_cycle::next_use& r : ranges) ASSERT_EQ(r.steps, r.bytes.begin / 10 + 1);
}

TEST(use_cycle, a_short_cycle_after_long_other_work_is_known_soon) {
  std::mt19937 random(9);
  use_cycle c;
  for (int n = 0; n < 5; ++n) add(c, numbers_from(1, 700));
  for (int n = 0; n < 2000; ++n) add(c, static_cast<std::uint32_t>(1 + random() % 50));
  for (int n = 0; n < 20; ++n) add(c, numbers_from(800, 9));
  EXPECT_EQ(c.period(), 9U);
}

TEST(use_cycle, other_steps_end_the_cycle_before_they_fill_a_third_of_it) {
  use_cycle c;
  for (int n = 0; n < 3; ++n) add(c, numbers_from(1, 1000));
  ASSERT_EQ(c.period(), 1000U);
  // A device that goes on with other work: the memory of each step is used again after 200 steps.
  std::uint64_t steps = 0;
  for (; c.period() == 1000 && steps < 2000; ++steps) add(c, static_cast<std::uint32_t>(5000 + steps % 200));
  EXPECT_LT(steps, 600U);
  for (int n = 0; n < 40; ++n) add(c, numbers_from(5000, 200));
  EXPECT_EQ(c.period(), 200U);
  for (int n = 0; n < 4; ++n) add(c, numbers_from(1, 1000));
  EXPECT_EQ(c.period(), 1000U) << "known again";
}

TEST(use_cycle, a_random_sequence_after_a_cycle_has_no_cycle) {
  std::mt19937 random(6);
  use_cycle c;
  for (int n = 0; n < 10; ++n) add(c, numbers_from(1, 50));
  ASSERT_EQ(c.period(), 50U);
  std::size_t known = 0;
  for (int n = 0; n < 4000; ++n) {
    add(c, static_cast<std::uint32_t>(1 + random() % 50));
    known += n >= 1000 && c.period() != 0 ? 1 : 0;
  }
  EXPECT_LT(known, 300U);
}

TEST(use_cycle, the_same_region_with_other_bytes_is_another_step) {
  use_cycle c;
  for (std::uint64_t n = 0; n < 100; ++n) {
    c.use(1, {n, n + 1});
    c.end_step();
    ASSERT_EQ(c.period(), 0U);
  }
}

TEST(use_cycle, steps_without_uses_count) {
  use_cycle c;
  for (int n = 0; n < 100; ++n) c.end_step();
  EXPECT_EQ(c.period(), 1U);
  EXPECT_EQ(steps_until_use(c, 1, all), 0U);
}

TEST(use_cycle, periods_that_are_too_long_are_not_known) {
  use_cycle c;
  for (int n = 0; n < 3; ++n) add(c, numbers_from(1, use_cycle::most_steps + 1));
  EXPECT_EQ(c.period(), 0U);
  use_cycle wide;
  for (int n = 0; n < 5; ++n)
    for (std::uint32_t s = 0; s < 100; ++s) {
      for (std::uint64_t u = 0; u < use_cycle::most_uses / 90; ++u) wide.use(s, {u, u + 1});
      wide.end_step();
    }
  EXPECT_EQ(wide.period(), 0U);
}

TEST(use_cycle, allocates_only_at_the_first_step_and_for_larger_numbers) {
  use_cycle c;
  const std::vector<std::uint32_t> steps = numbers_from(1, 1000);
  add(c, 1000);
  const std::size_t before = allocations;
  std::uint64_t sum = 0;
  for (int n = 0; n < 20; ++n)
    for (const std::uint32_t s : steps) {
      add(c, s);
      if (c.period() != 0) sum += steps_until_use(c, s, all);
    }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0U);
}

// Against the definition: memory is used again one period after its uses in the latest period.
TEST(use_cycle, random_sequences_with_repeated_parts) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    use_cycle c;
    std::vector<std::uint32_t> given;
    while (given.size() < 500) {
      std::vector<std::uint32_t> part(1 + random() % 40);
      for (std::uint32_t& n : part) n = 1 + random() % 20;
      for (std::size_t times = 1 + random() % 5; times > 0; --times) {
        for (const std::uint32_t n : part) {
          given.push_back(n);
          add(c, n);
          const std::uint64_t period = c.period();
          if (period == 0) continue;
          ASSERT_LE(period, given.size());
          for (std::uint32_t r = 1; r <= 20; ++r) {
            if (period >= 32) continue;  // a use may be late
            const auto latest = given.end() - static_cast<std::ptrdiff_t>(period);
            const auto next = std::find(latest, given.end(), r);
            ASSERT_EQ(steps_until_use(c, r, all),
                      next == given.end() ? 0U : static_cast<std::uint64_t>(next - latest) + 1);
          }
        }
      }
    }
  }
}

TEST(use_cycle, random_bytes_of_regions) {
  std::mt19937 random(2);
  const auto number = [&](std::uint64_t below) { return static_cast<std::uint64_t>(random() % below); };
  for (int round = 0; round < 100; ++round) {
    struct use {
      std::uint32_t region;
      byte_range bytes;
    };
    std::vector<std::vector<use>> steps(8 + number(40));
    for (auto& step : steps) {
      step.resize(number(5));
      for (use& u : step) {
        const std::uint64_t begin = number(10) * 10;
        u = {static_cast<std::uint32_t>(number(3)), {begin, begin + 1 + number(50)}};
      }
    }
    use_cycle c;
    const std::size_t given = 2 * steps.size() + number(steps.size());
    for (std::size_t n = 0; n < given; ++n) {
      for (const use& u : steps[n % steps.size()]) c.use(u.region, u.bytes);
      c.end_step();
    }
    if (c.period() != steps.size()) continue;  // a shorter cycle
    for (int query = 0; query < 50; ++query) {
      const auto region = static_cast<std::uint32_t>(number(4));
      const std::uint64_t begin = number(150), end = begin + 1 + number(20);
      std::uint64_t expected = 0;
      for (std::uint64_t n = 1; n <= steps.size() && expected == 0; ++n)
        for (const use& u : steps[(given + n - 1) % steps.size()])
          if (u.region == region && u.bytes.begin < end && begin < u.bytes.end) expected = n;
      ASSERT_EQ(steps_until_use(c, region, {begin, end}), expected);
    }
  }
}

}  // namespace
}  // namespace hpe::coherence
