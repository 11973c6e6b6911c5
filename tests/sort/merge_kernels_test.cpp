// The merge kernels of GPUs, as nvcc makes PTX of them, run on the CPU against the standard library's merge.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/sort.h"
#include "tests/ptx/kernel_runner.h"
#include "tests/sort/descending.h"

namespace {

using hpe::kernels::by_key;
using hpe::kernels::sort_merge;
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
  std::size_t shift_left, shift;  ///< elements before the left side and the right one, for their alignment
  double begin, end;              ///< of the outputs that are asked for
  unsigned blocks;
};

class merge_kernels : public ::testing::Test {
 protected:
  template <class T, class Less>
  void check(kernel_runner& runner, const std::string& kernel, const problem& what) {
    SCOPED_TRACE(kernel + ", " + std::to_string(what.left) + " and " + std::to_string(what.right) + " of " +
                 std::to_string(what.kinds) + " kinds, " + std::to_string(what.blocks) + " blocks, seed " +
                 std::to_string(seed_));
    std::vector<T> sides[2] = {std::vector<T>(what.left), std::vector<T>(what.right)};
    std::size_t place = 0;
    for (auto& side : sides) {
      for (T& element : side) element = make<T>(random_() % what.kinds, place++);
      std::stable_sort(side.begin(), side.end(), Less{});
    }
    std::vector<T> wanted(what.left + what.right);
    std::merge(sides[0].begin(), sides[0].end(), sides[1].begin(), sides[1].end(), wanted.begin(), Less{});

    // Room to the next line, for what is loaded besides.
    constexpr std::size_t line = 128, poison_bytes = 64;
    const auto put = [&](const std::vector<T>& side, std::size_t shift) {
      T* const memory = static_cast<T*>(runner.allocate((shift + side.size()) * sizeof(T) + line)) + shift;
      std::copy(side.begin(), side.end(), memory);
      return memory;
    };
    const std::vector<T> poison(wanted.size() + poison_bytes, make<T>(0xA5A5A5A5, 77));
    T* const output = put(poison, 0);
    sort_merge<T> p{};
    p.left = put(sides[0], what.shift_left);
    p.right = put(sides[1], what.shift);
    p.left_count = what.left;
    p.right_count = what.right;
    p.output = output;
    p.from = static_cast<std::uint64_t>(what.begin * static_cast<double>(wanted.size()));
    p.to = static_cast<std::uint64_t>(what.end * static_cast<double>(wanted.size()));
    const auto stopped = runner.launch(kernel, {{what.blocks}, {hpe::kernels::merge_threads}}, p);
    ASSERT_FALSE(stopped.has_value()) << stopped->message();
    const std::size_t bytes = (p.to - p.from) * sizeof(T);
    ASSERT_EQ(std::memcmp(output + p.from, wanted.data() + p.from, bytes), 0);
    ASSERT_EQ(std::memcmp(output, poison.data(), p.from * sizeof(T)), 0) << "before";
    ASSERT_EQ(std::memcmp(output + p.to, poison.data(), (poison.size() - p.to) * sizeof(T)), 0) << "behind";
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

TEST_F(merge_kernels, all_types) {
  kernel_runner runner = load("merge");
#define HPE_SORT_PAIR(K, V) sort_pair<K, V>
#define HPE_SORT(name, ...) \
  for (const problem& p : problems) check<__VA_ARGS__, by_key>(runner, "sort_merge_" #name, p);
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

TEST_F(merge_kernels, an_order_of_a_program) {
  kernel_runner runner = load("descending_kernels");
  for (const problem& p : problems) check<measured, by_size_descending>(runner, "sort_merge_measured", p);
}

}  // namespace
