// Tests the model: the paper's equations at points that can be computed by hand, and the fit for machines with known
// parameters.

#include "apps/gather/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "apps/command_line/bad_input.h"
#include "apps/gather/fit.h"

namespace hpe::gather {
namespace {

/// Returns the expected number of different blocks, which the paper computes as a sum with Stirling numbers, for small
/// n and k.
double expected_by_counting(unsigned accesses, unsigned blocks) {
  std::vector<double> probability(blocks + 1, 0);  // probability[j]: that j different blocks have been accessed so far
  probability[0] = 1;
  for (unsigned i = 0; i < accesses; ++i)
    for (unsigned j = blocks + 1; j-- > 0;)
      probability[j] =
          (probability[j] * j + (j > 0 ? probability[j - 1] * (blocks - j + 1) : 0)) / static_cast<double>(blocks);
  double sum = 0;
  for (unsigned j = 1; j <= blocks; ++j) sum += j * probability[j];
  return sum;
}

TEST(gather_model, different_blocks_are_those_of_the_sum) {
  for (const unsigned n : {1U, 2U, 5U, 9U})
    for (const unsigned k : {1U, 2U, 4U, 7U})
      EXPECT_NEAR(distinct_blocks(n, k), expected_by_counting(n, k), 1e-9) << n << " " << k;
  EXPECT_NEAR(distinct_blocks(1, 1e12), 1, 1e-9);
}

TEST(gather_model, misses_of_case_one) {
  // All blocks fit into the cache: each block misses once.
  EXPECT_DOUBLE_EQ(uniform_misses(1000, 4, 100), distinct_blocks(1000, 4) / 1000);
  // Half of the blocks fit: the first access to each block misses, and half of the later accesses miss.
  const double e = distinct_blocks(1e6, 1000);
  EXPECT_NEAR(uniform_misses(1e6, 1000, 500), (e + (e - 500) / e * (1e6 - e)) / 1e6, 1e-12);
  EXPECT_NEAR(uniform_misses(1e6, 1000, 500), 0.5, 0.001);
  EXPECT_EQ(thrashing_misses(1e6, 1000, 500), 1);
  EXPECT_EQ(thrashing_misses(1e6, 1000, 1000), uniform_misses(1e6, 1000, 1000));
}

TEST(gather_model, a_run_finds_cached_lines_of_the_run_before) {
  constexpr double line = 64, n = 1e6;
  const level small{1 << 20, 1}, strict{1 << 20, 1, true};
  for (const double passes : {1.0, 8.0}) EXPECT_EQ(run_misses(small, n, 1 << 20, line, passes), 0);
  EXPECT_DOUBLE_EQ(run_misses(small, n, 1 << 22, line, 1), 0.75);
  EXPECT_EQ(run_misses(strict, n, 1 << 22, line, 1), 1);
  // Chunks that fit are not in the cache when their pass begins, so each of their lines misses once.
  EXPECT_DOUBLE_EQ(run_misses(small, n, 1 << 22, line, 8), uniform_misses(n / 8, (1 << 19) / line, (1 << 20) / line));
}

/// The time of an access grows only for tables larger than 32 MiB, as with remote memory and address translation. If
/// the fit assumed that each level also costs time below its size, the errors at large sizes would be up to 0.19.
TEST(gather_model, a_fit_finds_levels_missed_by_large_tables_only) {
  std::vector<double> sizes, capacities, values;
  for (double bytes = 0x1p20; bytes <= 0x1p32; bytes *= 2) sizes.insert(sizes.end(), {bytes, 1.5 * bytes});
  for (const double bytes : sizes) {
    capacities.push_back(bytes);
    values.push_back(bytes <= 0x1p25 ? 6e-9 : bytes <= 0x1p26 ? 10e-9 : bytes <= 0x1p27 ? 20e-9 : 26e-9);
  }
  std::vector<std::vector<double>> columns{std::vector<double>(sizes.size(), 1)};
  for (const bool thrashes : {false, true})
    for (const double capacity : capacities) {
      std::vector<double>& column = columns.emplace_back();
      for (const double bytes : sizes) column.push_back(run_misses({capacity, 1, thrashes}, bytes / 8, bytes, 32, 1));
    }
  const std::vector<double> x = fit_not_negative(columns, values, values);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double found = 0;
    for (std::size_t j = 0; j < x.size(); ++j) found += x[j] * columns[j][i];
    EXPECT_NEAR(found / values[i], 1, 0.01) << sizes[i];
  }
}

TEST(gather_model, transactions_of_case_two) {
  EXPECT_DOUBLE_EQ(partition_misses(1, 32, 8, 32), 8.0 / 32);  // a warp reads 8 blocks
  EXPECT_NEAR(partition_misses(1e9, 32, 8, 32), 1, 1e-6);      // each thread accesses a block of its own
}

TEST(gather_model, the_fit_finds_the_factors_of_made_values) {
  const std::vector<std::vector<double>> columns{{1, 1, 1, 1}, {0, 0.5, 0.8, 0.9}, {1, 0.3, 0.1, 0}};
  std::vector<double> values;
  for (std::size_t i = 0; i < 4; ++i) values.push_back(3 * columns[0][i] + 7 * columns[1][i]);
  const std::vector<double> x = fit_not_negative(columns, values, values);
  EXPECT_NEAR(x[0], 3, 1e-4);
  EXPECT_NEAR(x[1], 7, 1e-4);
  EXPECT_NEAR(x[2], 0, 1e-4);
  for (const double v : fit_not_negative({{1, 2}, {-1, -2}}, {1, 2}, {1, 2})) EXPECT_GE(v, 0);
}

parameters a_machine() {
  parameters m;
  m.device = "imagined";
  m.launch = 1e-5;
  m.pass = 1e-11;
  m.sequential = {{1e6, 1e-12}, {1e9, 1e-11}};
  m.gather = {1e-10, {{0x1p20, 4e-9}, {0x1p21, 1e-9, true}}, 1, 1e-10, {{64, 1e-9}}, 1e-11};
  m.scatter = {1e-10, {}, 1, 1e-10, {}, 1e-9};
  return m;
}

TEST(gather_model, first_uses_of_blocks_in_a_pass_have_a_time_of_their_own) {
  parameters m = a_machine();
  m.gather.levels = {{0x1p20, 4e-9}};
  const problem p{way::gather, 8, 4, 1 << 20, 1 << 20};
  const auto random = [&](std::uint32_t passes) { return predict(m, p, {method::multi_pass, passes}).random; };
  const double chunks_fit = random(16), chunks_do_not = random(2), hits = static_cast<double>(p.count) * m.gather.hit;
  m.gather.first_use = 0.25;
  EXPECT_NEAR(random(16) - hits, 0.25 * (chunks_fit - hits), 1e-12);
  EXPECT_EQ(random(2), chunks_do_not);
}

TEST(gather_model, kernels_hide_later_launches) {
  const parameters m = a_machine();
  problem p{way::gather, 8, 4, 64, 64};
  const prediction few = predict(m, p, {method::multi_pass, 8});
  EXPECT_NEAR(few.total(), 8 * m.launch, 1e-9) << "launches take longer than the kernels";
  p.table = p.count = std::uint64_t{1} << 26;
  EXPECT_EQ(predict(m, p, {method::multi_pass, 8}).launch, m.launch);
}

TEST(gather_model, the_choice_follows_the_predictions) {
  const parameters m = a_machine();
  const problem large{way::gather, 8, 4, std::uint64_t{1} << 26, std::uint64_t{1} << 26};
  // Misses take long, and partitions take little time.
  EXPECT_EQ(choices(m, large).front().how.how, method::partitioned);
  problem small = large;
  small.table = small.count = 1 << 14;
  EXPECT_EQ(choices(m, small).front().how.how, method::single_pass);
  // A scatter never misses on this machine.
  problem scatter = large;
  scatter.direction = way::scatter;
  EXPECT_EQ(choices(m, scatter).front().how.how, method::single_pass);
  // A partition loses the order of equal indices.
  problem last = scatter;
  last.equal = duplicates::last;
  for (const prediction& p : choices(m, last)) EXPECT_NE(p.how.how, method::partitioned);
  EXPECT_NE(explain(m, large).find("partitioned"), std::string::npos);
}

TEST(gather_model, parameters_come_back_from_json) {
  const parameters m = a_machine(), back = parameters_of_json(as_json(m), "f");
  EXPECT_EQ(as_json(back), as_json(m));
  for (const char* text : {"", "{}", "[]", R"({"format":99})", R"({"format":3,"device":3})"}) {
    try {
      static_cast<void>(parameters_of_json(text, "the file"));
      ADD_FAILURE() << text;
    } catch (const command_line::bad_input& e) {
      EXPECT_EQ(std::string(e.what()).find("the file is not a gather-model file"), 0U) << e.what();
    }
  }
}

TEST(gather_model, a_fit_of_this_machine_is_kept_and_read_again) {
  const std::string folder = std::filesystem::path(::testing::TempDir()) / ("hpe-fit-" + std::to_string(getpid()));
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  // Computes the same fit as fitted(), but with smaller tables.
  constexpr std::size_t largest = std::size_t{1} << 22;
  stopwatch clock(0, largest);
  const parameters m = fit(clock, largest, {});
  EXPECT_GT(m.launch, 0);
  EXPECT_GT(m.mean_sequential(), 0);
  EXPECT_GT(m.gather.hit + m.gather.levels.size(), 0);
  std::filesystem::create_directories(std::filesystem::path(cache_file(0)).parent_path());
  parameters kept = m;
  kept.pass = 0.125;  // a value that is never measured
  std::ofstream(cache_file(0)) << as_json(kept);
  EXPECT_EQ(fitted(0, false, {}).pass, 0.125);
  ::unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hpe::gather
