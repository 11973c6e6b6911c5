// Compares the transforms of all forms with the definition, on one to four devices.

#include <gtest/gtest.h>

#include <string>

#include "hpe/error.hpp"
#include "tests/fft/transforms.h"

namespace hpe::fft {
namespace {

// Bounds of root mean square errors in units of eps log2 n. The bound of Bluestein's algorithm is larger, because the
// algorithm contains several transforms.
double bound(form how) { return how == form::convolution ? 3 : 1; }

template <class T>
class accuracy : public ::testing::Test {};
using precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(accuracy, precisions);

std::string words(const problem& p, const settings& s) {
  return std::to_string(p.rows) + " x " + std::to_string(p.length) + " batch " + std::to_string(p.batch) + ", form " +
         std::to_string(static_cast<int>(s.how)) + ", " + std::to_string(s.devices) + " devices, seed " +
         std::to_string(fresh_seed());
}

bool possible(const problem& p, form how, int devices) {
  if (how == form::exchange) return p.rows == 1 && devices > 1 && p.length % 2 == 0;
  return how != form::convolution || p.rows == 1;
}

constexpr form all_forms[] = {form::local, form::exchange, form::transpose, form::convolution};

template <class T>
void expect_definition(const problem& p, bool fused = true) {
  const auto x = reference::random_vector<T>(p.rows * p.length, fresh_seed());
  for (const int sign : {forward, inverse}) {
    const auto wanted = reference::transform(x, p.rows, p.length, sign);
    for (const form how : all_forms)
      for (int devices = 1; devices <= device_count(); ++devices) {
        if (!possible(p, how, devices)) continue;
        const settings s{.how = how, .devices = devices, .soft_effort = effort::estimate, .fused = fused};
        plan<T> made(p, s);
        EXPECT_EQ(made.chosen(), how);
        for (const place where : {place::out, place::in})
          EXPECT_LT(reference::error_of(run(made, x, sign, where), wanted, p.length * p.rows), bound(how))
              << words(p, s) << (where == place::in ? " in place" : "") << " sign " << sign << "\n"
              << made.explain();
      }
  }
}

TYPED_TEST(accuracy, the_smallest_lengths) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8}) expect_definition<TypeParam>({.length = n});
}

TYPED_TEST(accuracy, primes_odd_lengths_and_powers) {
  for (const std::int64_t n : {31, 81, 128, 250, 509, 1000}) expect_definition<TypeParam>({.length = n});
}

TYPED_TEST(accuracy, two_dimensions) {
  for (const auto& [rows, length] : {std::pair{2, 1}, {2, 3}, {7, 5}, {16, 16}, {3, 70}, {61, 4}, {33, 35}})
    expect_definition<TypeParam>({.rows = rows, .length = length});
}

TYPED_TEST(accuracy, transposes_and_transforms_in_kernels_of_their_own) {
  if (device_info(0).kind != HPE_DEVICE_SOFT) GTEST_SKIP() << "they always are on GPUs";
  for (const std::int64_t n : {1, 6, 128, 999}) expect_definition<TypeParam>({.length = n}, false);
  expect_definition<TypeParam>({.rows = 33, .length = 70}, false);
}

TYPED_TEST(accuracy, long_ones_at_random_places) {
  std::mt19937_64 random(fresh_seed());
  for (const std::int64_t n : {4096, 6000, 8191, 8198, 19683, 131071, 131072, 131075}) {
    const auto x = reference::random_vector<TypeParam>(n, fresh_seed());
    const auto root = reference::roots(n);
    std::vector<std::int64_t> places;
    for (int i = 0; i < 24; ++i) places.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)));
    reference::vector<long double> wanted;
    for (const std::int64_t k : places) wanted.push_back(reference::element(x.data(), n, 1, k, forward, root));
    for (const form how : {form::automatic, form::local, form::exchange, form::transpose, form::convolution}) {
      const problem p{.length = n};
      if (!possible(p, how, device_count())) continue;
      const settings s{.how = how, .soft_effort = effort::estimate};
      plan<TypeParam> made(p, s);
      const auto all = run(made, x, forward, place::out);
      reference::vector<TypeParam> got;
      for (const std::int64_t k : places) got.push_back(all[static_cast<std::size_t>(k)]);
      EXPECT_LT(reference::error_of(got, wanted, n), bound(made.chosen())) << words(p, s) << "\n" << made.explain();
    }
  }
}

TYPED_TEST(accuracy, scrambled_elements_are_where_position_says) {
  for (const auto& [rows, length] : {std::pair{1, 240}, {1, 1000}, {1, 97}, {6, 35}, {32, 32}}) {
    const problem p{.rows = rows, .length = length};
    const auto x = reference::random_vector<TypeParam>(rows * length, fresh_seed());
    const auto wanted = reference::transform(x, rows, length, forward);
    for (const form how : {form::local, form::transpose})
      for (const bool fused : {true, false})
        for (int devices = 1; devices <= device_count(); ++devices)
          for (const place where : {place::out, place::in}) {
            const settings s{.how = how,
                             .elements = order::scrambled,
                             .devices = devices,
                             .soft_effort = effort::estimate,
                             .fused = fused};
            plan<TypeParam> made(p, s);
            const auto got = run(made, x, forward, where);
            reference::vector<TypeParam> sorted(got.size());
            for (std::size_t k = 0; k < got.size(); ++k)
              sorted[k] = got[static_cast<std::size_t>(made.position(static_cast<std::int64_t>(k)))];
            EXPECT_LT(reference::error_of(sorted, wanted, rows * length), 1) << words(p, s);
            auto back = run(made, got, inverse, where);
            for (auto& v : back) v /= static_cast<TypeParam>(rows * length);
            EXPECT_LT(reference::error_of(back, x, rows * length), 2) << words(p, s);
          }
  }
}

}  // namespace
}  // namespace hpe::fft
