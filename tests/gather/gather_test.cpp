// Compares gathers and scatters on the devices of HPE_DEVICES with plain loops.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "apps/gather/gather_plan.h"

namespace hpe::gather::testing {
namespace {

constexpr std::uint64_t poison = 0xA5A5A5A5A5A5A5A5;

struct setup {
  problem what;
  choice how;
  std::vector<int> devices;
  std::uint64_t range;  ///< indices are below it, so that some are out of range if it exceeds the table
};

/// Returns two lists: one device, and all devices with the first device last.
std::vector<std::vector<int>> one_and_all() {
  std::vector<int> all;
  for (int d = 1; d < device_count(); ++d) all.push_back(d);
  all.push_back(0);
  return {{0}, all};
}

/// Returns the words of all elements; all words differ.
std::vector<std::uint32_t> words_of(std::uint64_t elements, std::size_t bytes, std::uint32_t salt) {
  std::vector<std::uint32_t> words(elements * bytes / 4);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761U + salt);
  return words;
}

void check(const setup& s) {
  const unsigned seed = std::random_device{}();
  const problem& p = s.what;
  SCOPED_TRACE(std::string(p.direction == way::gather ? "gather, " : "scatter, ") + name_of(s.how.how) + " " +
               std::to_string(s.how.chunks) + ", " + std::to_string(p.element) + " bytes, index " +
               std::to_string(p.index) + ", table " + std::to_string(p.table) + ", count " + std::to_string(p.count) +
               ", " + std::to_string(s.devices.size()) + " devices, seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> index(p.count);
  for (auto& x : index) x = random() % s.range;
  plan work(p, s.how, s.devices);
  const array<std::byte> table(p.table * p.element, work.where_table()),
      indices(p.count * p.index, work.where_indices()), values(p.count * p.element, work.where_values());
  const auto table_words = words_of(p.table, p.element, 1), value_words = words_of(p.count, p.element, 2);
  const std::size_t words = p.element / 4;
  const bool gathers = p.direction == way::gather;
  for (int run = 0; run < 2; ++run) {
    std::memcpy(table.data(), table_words.data(), table.size());
    for (std::size_t i = 0; i < p.count; ++i) std::memcpy(indices.data() + i * p.index, &index[i], p.index);
    if (gathers)
      std::memset(values.data(), 0xA5, values.size());
    else
      std::memcpy(values.data(), value_words.data(), values.size());
    work.run(table.data(), indices.data(), values.data());
    work.finish(indices.data());
    const auto* const have = reinterpret_cast<const std::uint32_t*>(gathers ? values.data() : table.data());
    std::vector<std::uint32_t> wanted =
        gathers ? std::vector<std::uint32_t>(value_words.size(), static_cast<std::uint32_t>(poison)) : table_words;
    // For each element of the table, the positions whose value the element may have. In a scatter without an order,
    // each of several equal indices may have written the element last.
    std::vector<std::vector<std::uint64_t>> writers(gathers ? 0 : p.table);
    for (std::size_t i = 0; i < p.count; ++i) {
      if (index[i] >= p.table) continue;
      if (gathers)
        std::copy_n(table_words.begin() + index[i] * words, words, wanted.begin() + i * words);
      else
        writers[index[i]].push_back(i);
    }
    for (std::size_t x = 0; x < writers.size(); ++x) {
      if (writers[x].empty()) continue;
      std::uint64_t winner = writers[x].back();
      if (p.equal == duplicates::any)
        for (const std::uint64_t w : writers[x])
          if (std::equal(have + x * words, have + (x + 1) * words, value_words.begin() + w * words)) winner = w;
      std::copy_n(value_words.begin() + winner * words, words, wanted.begin() + x * words);
    }
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), have)) << "run " << run;
  }
}

TEST(gather, all_methods_types_and_devices_agree_with_a_loop) {
  for (const way direction : {way::gather, way::scatter})
    for (const choice how : {choice{method::single_pass, 1}, choice{method::multi_pass, 7},
                             choice{method::partitioned, 1}, choice{method::partitioned, 100}})
      for (const std::size_t element : {4, 8, 16, 32})
        for (const std::size_t index : {4, 8})
          for (const std::vector<int>& devices : one_and_all())
            if (const problem p{direction, element, index, 5003, 7001};
                how.how != method::partitioned || !p.keeps_order())
              check({p, how, devices, 5003});
}

TEST(gather, long_arrays_span_granules_and_devices) {
  for (const way direction : {way::gather, way::scatter})
    for (const choice how :
         {choice{method::single_pass, 1}, choice{method::multi_pass, 3}, choice{method::partitioned, most_chunks(0)}})
      for (const std::vector<int>& devices : one_and_all())
        check({{direction, 8, 4, 700001, 1100003}, how, devices, 700001});
}

TEST(gather, a_table_is_staged_chunk_by_chunk) {
  for (const way direction : {way::gather, way::scatter})
    for (const std::uint32_t chunks : {1, 3, 7})
      check({{direction, 16, 4, 5003, 7001, duplicates::any, out_of_range::skip}, {method::staged, chunks}, {0}, 6000});
  if (const std::vector<int> all = one_and_all().back(); all.size() > 1) {
    EXPECT_THROW(plan({way::gather, 8, 4, 10, 10}, {method::staged, 2}, all), error);
  }
}

TEST(gather, small_and_odd_sizes) {
  for (const way direction : {way::gather, way::scatter})
    for (const choice how :
         {choice{method::single_pass, 1}, choice{method::multi_pass, 64}, choice{method::partitioned, 64}})
      for (const std::uint64_t table : {1, 2, 65})
        for (const std::uint64_t count : {1, 64, 129})
          check({{direction, 8, 8, table, count}, how, one_and_all().back(), table});
}

TEST(gather, the_last_of_equal_indices_wins) {
  for (const choice how : {choice{method::single_pass, 1}, choice{method::multi_pass, 5}})
    for (const std::vector<int>& devices : one_and_all())
      check({{way::scatter, 8, 4, 101, 300007, duplicates::last}, how, devices, 101});
  EXPECT_THROW(plan({way::scatter, 8, 4, 10, 10, duplicates::last}, {method::partitioned, 2}), error);
}

TEST(gather, a_permutation_of_the_largest_elements_is_partitioned) {
  const problem p{way::scatter, 32, 4, 5003, 5003, duplicates::none};
  EXPECT_THROW(plan({way::scatter, 32, 4, 10, 10}, {method::partitioned, 2}), error);
  for (const std::vector<int>& devices : one_and_all()) {
    plan work(p, {method::partitioned, 10}, devices);
    const array<std::uint64_t> table(p.table * 4, work.where_table()), values(p.count * 4, work.where_values());
    const array<std::uint32_t> indices(p.count, work.where_indices());
    for (std::size_t i = 0; i < p.count; ++i) indices[i] = static_cast<std::uint32_t>(i * 1234 % p.table);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
    work.run(table.data(), indices.data(), values.data());
    work.finish(indices.data());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(table[std::uint64_t{indices[i / 4]} * 4 + i % 4], i);
  }
}

TEST(gather, indices_out_of_range_are_left_out_or_refused) {
  for (const way direction : {way::gather, way::scatter})
    for (const choice how :
         {choice{method::single_pass, 1}, choice{method::multi_pass, 4}, choice{method::partitioned, 16}})
      for (const std::vector<int>& devices : one_and_all()) {
        check({{direction, 8, 4, 1000, 30011, duplicates::any, out_of_range::skip}, how, devices, 1300});
        constexpr std::uint64_t count = 600007, bad = 550001;
        plan work({direction, 4, 8, 10, count}, how, devices);
        const array<std::uint32_t> table(10, work.where_table()), values(count, work.where_values());
        const array<std::uint64_t> indices(count, work.where_indices());
        indices[bad] = 11;
        indices[bad + 1] = ~std::uint64_t{0};
        for (int again = 0; again < 2; ++again) {
          work.run(table.data(), indices.data(), values.data());
          try {
            work.finish(indices.data());
            FAIL() << "nothing was refused";
          } catch (const error& e) {
            EXPECT_STREQ(e.what(), "index 11 at place 550001 is out of range: the table has 10 elements");
          }
        }
        indices[bad] = indices[bad + 1] = 9;
        work.run(table.data(), indices.data(), values.data());
        work.finish(indices.data());
      }
}

TEST(gather, refuses_impossible_problems) {
  EXPECT_THROW(plan({way::gather, 12, 4, 10, 10}, {}), error);
  EXPECT_THROW(plan({way::gather, 8, 2, 10, 10}, {}), error);
  EXPECT_THROW(plan({way::gather, 8, 4, 10, 10}, {}, {0, 0}), error);
  EXPECT_THROW(plan({way::gather, 8, 4, 10, 10}, {}, {99}), error);
  EXPECT_THROW(plan({way::gather, 8, 4, 10, 10}, {method::partitioned, most_chunks(0) + 1}), error);
  EXPECT_THROW(plan({way::gather, 8, 4, 10, 10}, {method::multi_pass, 0}), error);
  plan work({way::gather, 16, 4, 10, 10}, {});
  const array<std::byte> data(1000);
  EXPECT_THROW(work.run(data.data(), nullptr, data.data() + 160), error);
  EXPECT_THROW(work.run(data.data() + 8, data.data() + 320, data.data() + 640), error);
}

}  // namespace
}  // namespace hpe::gather::testing
