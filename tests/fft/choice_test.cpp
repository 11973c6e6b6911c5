#include <gtest/gtest.h>

#include "apps/fft/fft_choice.h"
#include "hpe/hpe.hpp"

namespace hpe::fft {
namespace {

/// Returns the message of the error that body throws, and expects that the error has this status; "" if body throws no
/// error.
template <class Body>
std::string refusal(hpeStatus status, Body body) {
  try {
    body();
  } catch (const error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    return e.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(choice, factors_are_the_nearest) {
  for (std::int64_t n = 1; n < 2000; ++n) {
    const factors f = nearest_factors(n);
    ASSERT_EQ(f.first * f.second, n);
    ASSERT_LE(f.first, f.second);
    for (std::int64_t closer = f.first + 1; closer * closer <= n; ++closer) ASSERT_NE(n % closer, 0) << n;
  }
  EXPECT_EQ(nearest_factors((std::int64_t{1} << 31) - 1).first, 1);  // a prime
  EXPECT_EQ(nearest_factors(std::int64_t{1} << 30).first, 1 << 15);
}

TEST(choice, convenient_lengths_are_the_least) {
  const auto convenient = [](std::int64_t n) {
    if (n % 4 != 0) return false;
    for (const int p : {2, 3, 5})
      while (n % p == 0) n /= p;
    return n == 1;
  };
  for (std::int64_t n = 1; n < 3000; ++n) {
    std::int64_t wanted = std::max<std::int64_t>(n, 4);
    while (!convenient(wanted)) ++wanted;
    ASSERT_EQ(convenient_length(n), wanted) << n;
  }
}

TEST(choice, exchanging_devices_are_a_power_of_two_that_divides) {
  EXPECT_EQ(exchanging(24, 4), 4);
  EXPECT_EQ(exchanging(24, 7), 4);
  EXPECT_EQ(exchanging(24, 16), 8);
  EXPECT_EQ(exchanging(6, 4), 2);
  EXPECT_EQ(exchanging(7, 4), 1);
}

TEST(choice, follows_size_and_devices) {
  const machine gpus{4, false, 8};
  const std::int64_t large = std::int64_t{1} << 28;
  EXPECT_EQ(choose({.length = large}, {}, gpus).how, form::transpose);
  EXPECT_EQ(choose({.length = large}, {}, {1, false, 8}).how, form::local);
  EXPECT_EQ(choose({.length = 1 << 16}, {}, gpus).how, form::local);
  EXPECT_EQ(choose({.length = large, .batch = 4}, {}, gpus).how, form::local);
  EXPECT_EQ(choose({.length = large, .batch = 3}, {}, gpus).how, form::transpose);
  EXPECT_EQ(choose({.rows = 1 << 13, .length = 1 << 13}, {}, gpus).how, form::transpose);
  EXPECT_EQ(choose({.length = (std::int64_t{1} << 31) - 1}, {}, gpus).how, form::convolution);
  EXPECT_EQ(choose({.length = 4 * 67108859LL}, {}, gpus).how, form::exchange);
  EXPECT_EQ(choose({.length = 5 * 67108859LL}, {}, gpus).how, form::transpose);
  EXPECT_EQ(choose({.length = 1 << 18}, {}, {2, true, 8}).how, form::transpose);
}

TEST(choice, one_gpu_is_better_behind_slow_links) {
  constexpr double memory = 2.6e12, slow = 3e11, fast = 3e12;  // bytes per second
  const problem large{.length = std::int64_t{1} << 26};
  const auto made = choose(large, {}, {2, false, 8, slow, memory});
  EXPECT_EQ(made.how, form::local);
  EXPECT_EQ(made.devices, 1);
  EXPECT_EQ(choose(large, {}, {2, false, 8, fast, memory}).how, form::transpose);
  EXPECT_EQ(choose(large, {}, {16, false, 8, slow, memory}).how, form::transpose);
  EXPECT_EQ(choose(large, {.how = form::transpose}, {2, false, 8, slow, memory}).how, form::transpose);
  EXPECT_EQ(choose(large, {}, {2, true, 8, slow, memory}).how, form::transpose) << "only real GPUs have such rates";
}

TEST(choice, refuses_invalid_settings) {
  const machine two{2, true, 8};
  const auto asked = [&](const problem& p, const settings& s, const machine& on) {
    return refusal(HPE_ERROR_INVALID_ARGUMENT, [&] { static_cast<void>(choose(p, s, on)); });
  };
  EXPECT_TRUE(says(asked({.length = 0}, {}, two), "length 0"));
  EXPECT_TRUE(says(asked({.length = -4}, {}, two), "must be at least 1"));
  EXPECT_TRUE(says(asked({.length = 4, .batch = 0}, {}, two), "batch 0"));
  EXPECT_TRUE(
      says(asked({.length = std::int64_t{1} << 40, .batch = std::int64_t{1} << 40}, {}, two), "can be addressed"));
  EXPECT_TRUE(says(asked({.length = 7}, {.how = form::exchange}, two), "even length"));
  EXPECT_TRUE(says(asked({.length = 8}, {.how = form::exchange}, {1, true, 8}), "two or more devices"));
  EXPECT_TRUE(says(asked({.rows = 2, .length = 8}, {.how = form::exchange}, two), "one dimension"));
  EXPECT_TRUE(says(asked({.rows = 2, .length = 8}, {.how = form::convolution}, two), "one dimension"));
  EXPECT_TRUE(says(asked({.length = 8}, {.how = form::exchange, .elements = order::scrambled}, two), "scrambled"));
}

TEST(plan, refuses_devices_that_there_are_not) {
  const auto words = refusal(HPE_ERROR_INVALID_ARGUMENT, [] { plan<float>({.length = 8}, {.devices = 99}); });
  EXPECT_TRUE(says(words, "99 devices: there are ")) << words;
}

TEST(plan, refuses_memory_that_will_not_do) {
  plan<float> made({.length = 64});
  const array<std::complex<float>> data(96);
  std::vector<std::complex<float>> ordinary(64);
  EXPECT_TRUE(
      says(refusal(HPE_ERROR_NOT_A_REGION, [&] { made.forward(ordinary.data(), data.data()); }), "memory of hpe"));
  EXPECT_TRUE(says(refusal(HPE_ERROR_NOT_A_REGION, [&] { made.forward(data.data(), nullptr); }), "memory of hpe"));
  EXPECT_TRUE(
      says(refusal(HPE_ERROR_INVALID_ARGUMENT, [&] { made.forward(data.data(), data.data() + 16); }), "overlap"));
  EXPECT_TRUE(says(refusal(HPE_ERROR_INVALID_ARGUMENT, [&] { made.inverse(data.data() + 64, data.data() + 64); }),
                   "the allocation ends after 256"));
}

}  // namespace
}  // namespace hpe::fft
