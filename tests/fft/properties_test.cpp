// Properties of every transform: the inverse of the forward transform, Parseval, linearity, batches.

#include <gtest/gtest.h>

#include "tests/fft/transforms.h"

namespace hpe::fft {
namespace {

template <class T>
class properties : public ::testing::Test {};
using precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(properties, precisions);

constexpr std::int64_t lengths[] = {2, 3, 1021, 4096, 10000, 65537, 1 << 18};

/// The bound of errors, in units of eps log2 n. It is higher than in accuracy_test.cpp, because the tests transform
/// twice and an automatic plan may be a convolution.
constexpr double bound = 6;

TYPED_TEST(properties, inverse_of_forward_is_n_times_the_input) {
  for (const std::int64_t n : lengths) {
    plan<TypeParam> made({.length = n}, {.soft_effort = effort::estimate});
    const auto x = reference::random_vector<TypeParam>(n, fresh_seed());
    for (const place where : {place::out, place::in}) {
      auto back = run(made, run(made, x, forward, where), inverse, where);
      for (auto& v : back) v /= static_cast<TypeParam>(n);
      EXPECT_LT(reference::error_of(back, x, n), bound) << n << ", seed " << fresh_seed();
    }
  }
}

TYPED_TEST(properties, parseval) {
  for (const std::int64_t n : lengths) {
    plan<TypeParam> made({.length = n}, {.soft_effort = effort::estimate});
    const auto x = reference::random_vector<TypeParam>(n, fresh_seed());
    const long double before = reference::squares(x) * n, after = reference::squares(run(made, x, forward, place::out));
    const long double unit = std::numeric_limits<TypeParam>::epsilon() * std::log2(static_cast<long double>(n));
    EXPECT_LT(std::abs(after / before - 1), bound * unit) << n << ", seed " << fresh_seed();
  }
}

TYPED_TEST(properties, linearity) {
  const std::complex<TypeParam> factor(TypeParam(0.75), TypeParam(-1.5));
  for (const std::int64_t n : lengths) {
    plan<TypeParam> made({.length = n}, {.soft_effort = effort::estimate});
    const auto x = reference::random_vector<TypeParam>(n, fresh_seed());
    const auto y = reference::random_vector<TypeParam>(n, fresh_seed() + 1);
    auto sum = x;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + factor * y[i];
    auto wanted = run(made, x, forward, place::out);
    const auto other = run(made, y, forward, place::out);
    for (std::size_t i = 0; i < sum.size(); ++i) wanted[i] += factor * other[i];
    EXPECT_LT(reference::error_of(run(made, sum, forward, place::out), wanted, n), bound)
        << n << ", seed " << fresh_seed();
  }
}

TYPED_TEST(properties, an_impulse_becomes_a_wave) {
  const std::int64_t n = 1 << 16, at = 12345;
  reference::vector<TypeParam> x(n);
  x[at] = 1;
  const auto root = reference::roots(n);
  reference::vector<long double> wanted;
  for (std::int64_t k = 0; k < n; ++k) wanted.push_back(std::conj(root[static_cast<std::size_t>(at * k % n)]));
  for (const form how : {form::local, form::exchange, form::transpose}) {
    if (how == form::exchange && device_count() < 2) continue;
    plan<TypeParam> made({.length = n}, {.how = how, .soft_effort = effort::estimate});
    EXPECT_LT(reference::error_of(run(made, x, forward, place::out), wanted, n), 1) << static_cast<int>(how);
  }
}

TYPED_TEST(properties, a_batch_is_its_arrays_one_by_one) {
  for (const auto& [rows, length] : {std::pair{1, 1}, {1, 30}, {1, 1009}, {12, 10}})
    for (const std::int64_t batch : {1, 2, 3, 4, 9}) {
      const std::int64_t one = rows * length;
      const auto x = reference::random_vector<TypeParam>(one * batch, fresh_seed());
      plan<TypeParam> alone({.rows = rows, .length = length}, {.how = form::local, .soft_effort = effort::estimate});
      reference::vector<TypeParam> wanted;
      for (std::int64_t b = 0; b < batch; ++b) {
        const reference::vector<TypeParam> mine(x.begin() + b * one, x.begin() + (b + 1) * one);
        const auto transformed = run(alone, mine, forward, place::out);
        wanted.insert(wanted.end(), transformed.begin(), transformed.end());
      }
      for (const form how : {form::automatic, form::local, form::transpose})
        for (const place where : {place::out, place::in}) {
          plan<TypeParam> made({.rows = rows, .length = length, .batch = batch},
                               {.how = how, .soft_effort = effort::estimate});
          EXPECT_LT(reference::error_of(run(made, x, forward, where), wanted, one), 2)
              << rows << " x " << length << ", batch " << batch << ", form " << static_cast<int>(how) << ", seed "
              << fresh_seed();
        }
    }
}

TYPED_TEST(properties, memory_may_lie_anywhere) {
  const std::int64_t n = 100000;
  const auto x = reference::random_vector<TypeParam>(n, fresh_seed());
  plan<TypeParam> made({.length = n}, {.how = form::transpose, .soft_effort = effort::estimate});
  const auto wanted = run(made, x, forward, place::out);
  const int last = device_count() - 1;
  for (const placement& where : {on_device(last), on_host(), cyclic_distribution()}) {
    const array<std::complex<TypeParam>> data(static_cast<std::size_t>(n) + 1, where);
    std::copy(x.begin(), x.end(), data.begin() + 1);  // less aligned than an allocation
    made.forward(data.data() + 1, data.data() + 1);
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), data.begin() + 1)) << "seed " << fresh_seed();
  }
}

}  // namespace
}  // namespace hpe::fft
