// Tests the merge kernels for GPUs: runs nvcc's PTX on the CPU and compares the results with the standard library's
// merge.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/sort.h"
#include "tests/ptx/kernel_runner.h"
#include "tests/sort/descending.h"

namespace {

using hpe::kernels::by_key;
using hpe::kernels::sort_merge;
using hpe::kernels::sort_merge_four;
using hpe::kernels::sort_pair;
using hpe::ptx::test::engine_kind;
using hpe::ptx::test::kernel_runner;

template <class T>
T make(std::uint64_t key, std::size_t place) {
  if constexpr (requires(T t) { t.key; })
    return {static_cast<decltype(T::key)>(key), static_cast<decltype(T::value)>(place)};
  else if constexpr (std::is_same_v<T, measured>)
    return {static_cast<std::int32_t>(key % 1000) - 500, static_cast<std::uint32_t>(place), 0.25F};
  else
    return static_cast<T>(key);
}

struct problem {
  std::size_t left, right;
  std::uint64_t kinds;            ///< of keys
  std::size_t shift_left, shift;  ///< elements before the left and the right side, for their alignment
  double begin, end;              ///< the part of the outputs that is merged
  unsigned blocks;
};

struct problem_of_four {
  std::vector<std::size_t> counts;
  std::uint64_t kinds;
  std::size_t shift;  ///< elements before the second run; twice as many before the third, and so on
  double begin, end;
  unsigned blocks;
};

class merge_kernels : public ::testing::Test {
 protected:
  template <class T, class Less>
  void check(kernel_runner& runner, const std::string& kernel, const problem& what) {
    SCOPED_TRACE(kernel + ", " + std::to_string(what.left) + " and " + std::to_string(what.right) + " of " +
                 std::to_string(what.kinds) + " kinds, " + std::to_string(what.blocks) + " blocks, seed " +
                 std::to_string(seed_));
    const std::size_t shifts[] = {what.shift_left, what.shift};
    const std::vector<std::vector<T>> sides = sorted_runs<T, Less>({what.left, what.right}, what.kinds);
    sort_merge<T> p{};
    p.left = put(runner, sides[0], shifts[0]);
    p.right = put(runner, sides[1], shifts[1]);
    p.left_count = what.left;
    p.right_count = what.right;
    check_outputs<T, Less>(runner, kernel, p, sides, what.begin, what.end, what.blocks);
  }

  template <class T, class Less>
  void check_four(kernel_runner& runner, const std::string& kernel, const problem_of_four& what) {
    SCOPED_TRACE(kernel + ", " + std::to_string(what.counts[0]) + ", " + std::to_string(what.counts[1]) + ", " +
                 std::to_string(what.counts[2]) + " and " + std::to_string(what.counts[3]) + " of " +
                 std::to_string(what.kinds) + " kinds, " + std::to_string(what.blocks) + " blocks, seed " +
                 std::to_string(seed_));
    const std::vector<std::vector<T>> runs = sorted_runs<T, Less>(what.counts, what.kinds);
    sort_merge_four<T> p{};
    for (std::size_t r = 0; r < runs.size(); ++r) {
      p.runs[r] = put(runner, runs[r], r * what.shift);
      p.counts[r] = runs[r].size();
    }
    check_outputs<T, Less>(runner, kernel, p, runs, what.begin, what.end, what.blocks);
  }

  /// Returns sorted runs of the given lengths; the value of a pair is the pair's original place.
  template <class T, class Less>
  std::vector<std::vector<T>> sorted_runs(const std::vector<std::size_t>& counts, std::uint64_t kinds) {
    std::vector<std::vector<T>> runs;
    std::size_t place = 0;
    for (const std::size_t count : counts) {
      std::vector<T>& run = runs.emplace_back(count);
      for (T& element : run) element = make<T>(random_() % kinds, place++);
      std::stable_sort(run.begin(), run.end(), Less{});
    }
    return runs;
  }

  /// Copies a run into memory that extends to the next cache line, because kernels load whole lines.
  template <class T>
  static T* put(kernel_runner& runner, const std::vector<T>& run, std::size_t shift) {
    constexpr std::size_t line = 128;
    T* const memory = static_cast<T*>(runner.allocate((shift + run.size()) * sizeof(T) + line)) + shift;
    std::copy(run.begin(), run.end(), memory);
    return memory;
  }

  template <class T, class Less, class Parameters>
  static void check_outputs(kernel_runner& runner, const std::string& kernel, Parameters p,
                            const std::vector<std::vector<T>>& runs, double begin, double end, unsigned blocks) {
    std::vector<T> wanted;
    for (const std::vector<T>& run : runs) wanted.insert(wanted.end(), run.begin(), run.end());
    std::stable_sort(wanted.begin(), wanted.end(), Less{});
    constexpr std::size_t poison_bytes = 64;
    const std::vector<T> poison(wanted.size() + poison_bytes, make<T>(0xA5A5A5A5, 77));
    p.output = put(runner, poison, 0);
    p.from = static_cast<std::uint64_t>(begin * static_cast<double>(wanted.size()));
    p.to = static_cast<std::uint64_t>(end * static_cast<double>(wanted.size()));
    const auto stopped = runner.launch(kernel, {{blocks}, {hpe::kernels::merge_threads}}, p);
    ASSERT_FALSE(stopped.has_value()) << stopped->message();
    const std::size_t bytes = (p.to - p.from) * sizeof(T);
    ASSERT_EQ(std::memcmp(p.output + p.from, wanted.data() + p.from, bytes), 0);
    ASSERT_EQ(std::memcmp(p.output, poison.data(), p.from * sizeof(T)), 0) << "before";
    ASSERT_EQ(std::memcmp(p.output + p.to, poison.data(), (poison.size() - p.to) * sizeof(T)), 0) << "behind";
  }

  static kernel_runner load(const std::string& name) {
    const auto engine = hpe::ptx::test::has_compiler ? engine_kind::compiler : engine_kind::interpreter;
    return kernel_runner({hpe::ptx::test::read_file(std::string(HPE_MERGE_PTX) + "/" + name + ".ptx")}, engine);
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
};

const std::vector<problem> problems = {
    {0, 1, 9, 0, 0, 0, 1, 1},
    {1, 0, 9, 1, 1, 0, 1, 3},
    {5, 3, 2, 3, 1, 0, 1, 1},
    {1000, 1000, 1 << 20, 1, 7, 0, 1, 1},
    {3000, 5001, 1 << 30, 5, 2, 0, 1, 1},
    {3000, 5001, 3, 33, 31, 0, 1, 2},
    {9001, 4000, 1 << 30, 0, 1, 0.3, 0.7, 2},
    {20011, 20013, 1 << 30, 2, 3, 0, 1, 5},
    {0, 7000, 100, 0, 3, 0, 1, 1},
    {7000, 0, 100, 3, 0, 0.5, 1, 2},
    {7000, 7000, 1, 1, 2, 0, 1, 1},
};

const std::vector<problem_of_four> problems_of_four = {
    {{0, 0, 0, 1}, 9, 0, 0, 1, 1},
    {{3, 0, 2, 0}, 2, 1, 0, 1, 3},
    {{1000, 1001, 999, 1000}, 1 << 30, 0, 0, 1, 1},
    {{3000, 5001, 4000, 700}, 1 << 20, 3, 0, 1, 2},
    {{3000, 5001, 0, 4000}, 3, 1, 0, 1, 3},
    {{9001, 4000, 8000, 2}, 1 << 30, 5, 0.3, 0.7, 2},
    {{7000, 0, 0, 9000}, 100, 0, 0.5, 1, 2},
    {{2500, 2500, 2500, 2500}, 1, 1, 0, 1, 3},
};

TEST_F(merge_kernels, all_types) {
  kernel_runner runner = load("merge");
#define HPE_SORT_PAIR(K, V) sort_pair<K, V>
#define HPE_SORT(name, ...)                                                                     \
  for (const problem& p : problems) check<__VA_ARGS__, by_key>(runner, "sort_merge_" #name, p); \
  for (const problem_of_four& p : problems_of_four)                                             \
    check_four<__VA_ARGS__, by_key>(runner, "sort_merge_four_" #name, p);
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
}

TEST_F(merge_kernels, one_side_before_the_other) {
  kernel_runner runner = load("merge");
  for (const bool left_first : {true, false}) {
    const std::size_t count = 10007;
    auto* const left = static_cast<std::uint32_t*>(runner.allocate(4 * count + 128));
    auto* const right = static_cast<std::uint32_t*>(runner.allocate(4 * count + 128));
    auto* const output = static_cast<std::uint32_t*>(runner.allocate(8 * count));
    for (std::uint32_t i = 0; i < count; ++i) {
      left[i] = left_first ? i : count + i;
      right[i] = left_first ? count + i : i;
    }
    const sort_merge<std::uint32_t> p{left, right, count, count, output, 0, 2 * count};
    const auto stopped = runner.launch("sort_merge_u32", {{2}, {hpe::kernels::merge_threads}}, p);
    ASSERT_FALSE(stopped.has_value()) << stopped->message();
    for (std::uint32_t i = 0; i < 2 * count; ++i) ASSERT_EQ(output[i], i);
  }
}

TEST_F(merge_kernels, runs_one_behind_the_other) {
  kernel_runner runner = load("merge");
  constexpr std::uint32_t runs = hpe::kernels::sort_runs, count = 5003;
  for (const std::uint32_t turn : {0U, 1U, 3U}) {
    sort_merge_four<std::uint32_t> p{};
    for (std::uint32_t r = 0; r < runs; ++r) {
      auto* const run = static_cast<std::uint32_t*>(runner.allocate(4 * count + 128));
      for (std::uint32_t i = 0; i < count; ++i) run[i] = (r + turn) % runs * count + i;
      p.runs[r] = run;
      p.counts[r] = count;
    }
    p.output = static_cast<std::uint32_t*>(runner.allocate(4 * runs * count));
    p.to = runs * count;
    const auto stopped = runner.launch("sort_merge_four_u32", {{3}, {hpe::kernels::merge_threads}}, p);
    ASSERT_FALSE(stopped.has_value()) << stopped->message();
    for (std::uint32_t i = 0; i < runs * count; ++i) ASSERT_EQ(p.output[i], i);
  }
}

TEST_F(merge_kernels, an_order_of_a_program) {
  kernel_runner runner = load("descending_kernels");
  for (const problem& p : problems) check<measured, by_size_descending>(runner, "sort_merge_measured", p);
  for (const problem_of_four& p : problems_of_four)
    check_four<measured, by_size_descending>(runner, "sort_merge_four_measured", p);
}

}  // namespace
