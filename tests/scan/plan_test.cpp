// Runs whole scans with plans, on the devices of HPE_DEVICES.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/scan/scan_plan.h"
#include "tests/scan/affine.h"
#include "tests/scan/support.h"

namespace hpe::scan::testing {
namespace {

struct request {
  std::uint64_t length, problems;
  algorithm how = algorithm::automatic;
  split spread = split::automatic;
  std::uint64_t iterations = 1;
  bool in_place = false;
  std::size_t shift = 0;  ///< elements between an aligned address and the data
};

std::string words(const request& r) {
  return "N = " + std::to_string(r.length) + ", G = " + std::to_string(r.problems) + ", " + name_of(r.how) + ", " +
         name_of(r.spread) + ", K = " + std::to_string(r.iterations) + (r.in_place ? ", in place" : "") +
         ", shifted by " + std::to_string(r.shift);
}

/// Runs a plan twice and compares both results with the reference, and the memory around the output with poison.
template <class T>
void check_scan(const request& r, built_in op, bool inclusive) {
  const unsigned seed = fresh_seed();
  SCOPED_TRACE(words(r) + ", " + operation_for<T>(op).suffix + (inclusive ? ", inclusive" : ", exclusive") + ", seed " +
               std::to_string(seed));
  const std::size_t count = r.length * r.problems;
  const std::vector<T> values = random_values<T>(count, seed);
  const expected<T> wanted = reference(values, r.length, op, inclusive);
  wishes wished;
  wished.how = r.how;
  wished.spread = r.spread;
  wished.iterations = r.iterations;
  plan scan(operation_for<T>(op), {r.length, r.problems, inclusive}, wished);
  const std::size_t margin = 5;
  const array<T> input(r.shift + count + margin, scan.where());
  const array<T> output(r.shift + count + margin, scan.where());
  for (int run = 0; run < 2; ++run) {
    std::copy(values.begin(), values.end(), input.begin() + static_cast<std::ptrdiff_t>(r.shift));
    std::fill(output.begin(), output.end(), poison<T>());
    T* const source = input.data() + r.shift;
    T* const target = r.in_place ? source : output.data() + r.shift;
    scan.run(source, target);
    const std::size_t wrong = first_difference(target, wanted);
    ASSERT_EQ(wrong, count) << "run " << run << ": " << target[wrong] << " for " << wanted.values[wrong];
    if (r.in_place) continue;
    for (std::size_t i = 0; i < r.shift; ++i) ASSERT_TRUE(is_poison(output[i])) << "before the output";
    for (std::size_t i = 0; i < margin; ++i) ASSERT_TRUE(is_poison(output[r.shift + count + i])) << "behind the output";
  }
  synchronize();
}

bool connected() { return reach_each_other(inspect({})); }

const std::vector<request>& requests() {
  static const std::vector<request> all = [] {
    std::vector<request> list;
    for (const algorithm how : {algorithm::single_pass, algorithm::three_stages})
      for (const split spread : {split::problems, split::mps, split::mp_pc}) {
        if (how == algorithm::single_pass && spread == split::mps && !connected()) continue;
        for (const auto& [length, problems] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1},
                                                                                                   {1, 1001},
                                                                                                   {2, 3},
                                                                                                   {3, 777},
                                                                                                   {17, 1},
                                                                                                   {1000, 7},
                                                                                                   {4096, 5},
                                                                                                   {1024, 21},
                                                                                                   {1536, 11},
                                                                                                   {65537, 2},
                                                                                                   {100003, 3},
                                                                                                   {1 << 20, 1}})
          list.push_back({length, problems, how, spread});
        list.push_back({1024, 21, how, spread, 1});
        list.push_back({123457, 3, how, spread, 2, true});
        list.push_back({99991, 2, how, spread, 4, false, 1});
        list.push_back({99991, 2, how, spread, 1, true, 3});
      }
    return list;
  }();
  return all;
}

template <class T>
class plans : public ::testing::Test {};
using types = ::testing::Types<std::int32_t, std::int64_t, float, double>;
TYPED_TEST_SUITE(plans, types);

TYPED_TEST(plans, sums_inclusive) {
  for (const request& r : requests()) check_scan<TypeParam>(r, built_in::sum, true);
}
TYPED_TEST(plans, sums_exclusive) {
  for (const request& r : requests()) check_scan<TypeParam>(r, built_in::sum, false);
}
TYPED_TEST(plans, least_and_greatest) {
  for (const request& r : requests()) {
    check_scan<TypeParam>(r, built_in::min, true);
    check_scan<TypeParam>(r, built_in::max, false);
  }
}

TEST(plan, long_problems_over_many_granules) {
  for (const algorithm how : {algorithm::automatic, algorithm::three_stages})
    for (const split spread : {split::automatic, split::mp_pc}) {
      check_scan<std::int32_t>({(5U << 20) + 13, 1, how, spread, 16}, built_in::sum, true);
      check_scan<double>({(1U << 20) + 1, 3, how, spread, 8}, built_in::sum, false);
    }
}

// Rounding must not depend on the order in which blocks run.
TEST(plan, sums_of_floats_are_the_same_in_every_run) {
  const std::size_t count = (2U << 20) + 7;
  const std::vector<float> values = random_values<float>(count, fresh_seed());
  wishes shared;
  shared.spread = split::mps;
  plan scan(operation_for<float>(built_in::sum), {count, 1}, shared);
  if (connected()) {
    EXPECT_EQ(scan.chosen().how, algorithm::single_pass);
  }
  const array<float> input(count, scan.where()), output(count, scan.where());
  std::copy(values.begin(), values.end(), input.begin());
  scan.run(input.data(), output.data());
  const std::vector<float> first(output.begin(), output.end());
  for (int run = 0; run < 5; ++run) {
    std::fill(output.begin(), output.end(), -1.0F);
    scan.run(input.data(), output.data());
    ASSERT_TRUE(std::equal(first.begin(), first.end(), output.begin(), same_bits<float>)) << "run " << run;
  }
}

TEST(plan, nothing_to_scan_is_scanned) {
  for (const auto& [length, problems] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0}, {0, 5}, {7, 0}}) {
    plan scan(operation_for<float>(built_in::sum), {length, problems});
    scan.run(nullptr, nullptr);
    EXPECT_FALSE(scan.explain().empty());
  }
  synchronize();
}

TEST(plan, two_of_them_take_turns) {
  const std::size_t count = 3U << 20;
  wishes shared;
  shared.spread = split::mps;
  plan first(operation_for<std::int32_t>(built_in::sum), {count, 1}, shared);
  plan second(operation_for<std::int32_t>(built_in::max), {count, 1}, shared);
  const std::vector<std::int32_t> values = random_values<std::int32_t>(count, fresh_seed());
  const array<std::int32_t> input(count, first.where()), sums(count, first.where()), most(count, first.where());
  std::copy(values.begin(), values.end(), input.begin());
  for (int i = 0; i < 4; ++i) {
    first.run(input.data(), sums.data());
    second.run(input.data(), most.data());
  }
  EXPECT_EQ(first_difference(sums.data(), reference(values, count, built_in::sum, true)), count);
  EXPECT_EQ(first_difference(most.data(), reference(values, count, built_in::max, true)), count);
}

TEST(plan, results_follow_launches_and_host_writes) {
  const std::size_t count = 100000;
  plan scan(operation_for<std::int32_t>(built_in::sum), {count, 1});
  const array<std::int32_t> data(count, scan.where());
  std::fill(data.begin(), data.end(), 1);
  scan.run(data.data(), data.data());  // i + 1
  scan.run(data.data(), data.data());
  EXPECT_EQ(data[9], 55);
  data[0] = 101;
  scan.run(data.data(), data.data());
  EXPECT_EQ(data[1], 104);
}

hpeStatus status_of(const std::function<void()>& body, std::string& words) {
  try {
    body();
  } catch (const error& e) {
    words = e.what();
    return e.status();
  }
  return HPE_SUCCESS;
}

// A program's own operator, from its own module; it is not commutative.
TEST(plan, operators_of_a_program) {
  const std::size_t length = 70001, problems = 3;
  std::vector<affine> values(length * problems);
  std::mt19937 random(fresh_seed());
  for (affine& v : values) v = {static_cast<std::uint32_t>(random()) | 1U, static_cast<std::uint32_t>(random())};
  for (const request& r : requests()) {
    if (r.length > 5000 || r.length < 3) continue;
    for (const bool inclusive : {true, false}) {
      SCOPED_TRACE(words(r));
      wishes wished;
      wished.how = r.how;
      wished.spread = r.spread;
      wished.iterations = r.iterations;
      plan scan({"affine", sizeof(affine), HPE_TEST_OPERATOR}, {length, problems, inclusive}, wished);
      const array<affine> input(values.size(), scan.where()), output(values.size(), scan.where());
      std::copy(values.begin(), values.end(), input.begin());
      scan.run(input.data(), output.data());
      const compose op;
      for (std::size_t g = 0; g < problems; ++g) {
        affine all = op.identity();
        for (std::size_t i = g * length; i < (g + 1) * length; ++i) {
          const affine with = op(all, values[i]);
          const affine wanted = inclusive ? with : all;
          ASSERT_TRUE(output[i].factor == wanted.factor && output[i].offset == wanted.offset) << "element " << i;
          all = with;
        }
      }
    }
  }
}

TEST(plan, bad_arguments_are_refused) {
  std::string text;
  const operation sum = operation_for<float>(built_in::sum);
  plan scan(sum, {1000, 1});
  const array<float> data(3000);
  EXPECT_EQ(status_of([&] { scan.run(nullptr, data.data()); }, text), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { scan.run(data.data(), data.data() + 999); }, text), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(text.find("overlap"), std::string::npos) << text;
  EXPECT_EQ(status_of([&] { scan.run(reinterpret_cast<char*>(data.data()) + 1, data.data() + 1500); }, text),
            HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { plan(sum, {~0ULL, 3}); }, text), HPE_ERROR_INVALID_ARGUMENT);
  wishes in_one_pass;
  in_one_pass.how = algorithm::single_pass;
  in_one_pass.devices = {0};
  EXPECT_EQ(status_of([&] { plan(sum, {std::uint64_t{1} << 50, 1}, in_one_pass); }, text), HPE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(text.find("tiles"), std::string::npos) << text;
  EXPECT_EQ(status_of([&] { plan({"f32_sum", 3, ""}, {1, 1}); }, text), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { plan({"f32_product", 4, ""}, {1, 1}); }, text), HPE_ERROR_NOT_FOUND);
  EXPECT_EQ(status_of([&] { plan({"f32_sum", 4, "/no/such/module.so"}, {1, 1}); }, text), HPE_ERROR_NOT_FOUND);
  wishes wished;
  wished.devices = {0, 99};
  EXPECT_EQ(status_of([&] { plan(sum, {1, 1}, wished); }, text), HPE_ERROR_INVALID_DEVICE);
  wished.devices = {0, 0};
  EXPECT_EQ(status_of([&] { plan(sum, {1, 1}, wished); }, text), HPE_ERROR_INVALID_ARGUMENT);
  wished.devices = {};
  wished.iterations = 3;
  EXPECT_EQ(status_of([&] { plan(sum, {1, 1}, wished); }, text), HPE_ERROR_INVALID_ARGUMENT);
  // Ordinary memory is refused.
  std::vector<float> ordinary(2000);
  EXPECT_EQ(status_of([&] { scan.run(ordinary.data(), ordinary.data() + 1000); }, text), HPE_ERROR_NOT_A_REGION)
      << text;
}

TEST(plan, the_search_is_explained_and_kept) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("hpe-scan-cache-" + std::to_string(getpid()));
  wishes wished;
  wished.how = algorithm::three_stages;
  wished.cache = folder / "deeper" / "scan";
  const std::size_t count = 300000;
  const array<std::int32_t> input(count), output(count);
  std::fill(input.begin(), input.end(), 1);
  {
    plan scan(operation_for<std::int32_t>(built_in::sum), {count, 1}, wished);
    scan.run(input.data(), output.data());
    EXPECT_NE(scan.explain().find("search: K = 1: "), std::string::npos) << scan.explain();
    EXPECT_NE(scan.explain().find("premise"), std::string::npos) << scan.explain();
  }
  EXPECT_EQ(output[count - 1], static_cast<std::int32_t>(count));
  ASSERT_TRUE(std::filesystem::exists(wished.cache));
  plan again(operation_for<std::int32_t>(built_in::sum), {count, 1}, wished);
  again.run(input.data(), output.data());
  EXPECT_NE(again.explain().find("was found before and kept in"), std::string::npos) << again.explain();
  // A malformed cache is ignored.
  std::ofstream(wished.cache) << "nonsense\n99 more nonsense\n";
  plan third(operation_for<std::int32_t>(built_in::sum), {count, 1}, wished);
  third.run(input.data(), output.data());
  EXPECT_NE(third.explain().find("search: K = 1: "), std::string::npos) << third.explain();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hpe::scan::testing
