// Compares scans of problems that are spread over ranks with scans of the whole problems on the host. Every rank runs
// the same tests.

#include "apps/scan/distributed_plan.h"
#include "apps/scan_mpi/mpi_ranks.h"
#include "tests/mpi/ranks.h"
#include "tests/scan/support.h"

namespace hpe::scan::testing {
namespace {

/// A seed that is the same on all ranks; rank 0 draws it.
unsigned common_seed() {
  unsigned seed = fresh_seed();
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  return seed;
}

/// The length of each rank's part.
using parts = std::vector<std::uint64_t>;

parts even(std::uint64_t length) {
  parts all;
  for (int r = 0; r < ::ranks(); ++r)
    all.push_back(length * static_cast<std::uint64_t>(r + 1) / static_cast<std::uint64_t>(::ranks()) -
                  length * static_cast<std::uint64_t>(r) / static_cast<std::uint64_t>(::ranks()));
  return all;
}

/// Rank r has first + r elements, except for the last rank, which has none.
parts uneven(std::uint64_t first) {
  parts all;
  for (int r = 0; r < ::ranks(); ++r) all.push_back(r + 1 == ::ranks() ? 0 : first + static_cast<std::uint64_t>(r));
  return all;
}

template <class T>
void check_scan(const parts& lengths, std::uint64_t problems, built_in op, bool inclusive, bool in_place,
                std::uint64_t iterations) {
  const unsigned seed = common_seed();
  std::uint64_t length = 0, from = 0;
  for (int r = 0; r < ::ranks(); ++r) {
    if (r == ::rank()) from = length;
    length += lengths[static_cast<std::size_t>(r)];
  }
  const std::uint64_t mine = lengths[static_cast<std::size_t>(::rank())];
  SCOPED_TRACE("rank " + std::to_string(::rank()) + " has " + std::to_string(mine) + " of " + std::to_string(length) +
               ", G = " + std::to_string(problems) + ", " + operation_for<T>(op).suffix +
               (inclusive ? "" : ", exclusive") + (in_place ? ", in place" : "") + ", seed " + std::to_string(seed));
  const std::vector<T> values = random_values<T>(length * problems, seed);
  const expected<T> whole = reference(values, std::max<std::uint64_t>(length, 1), op, inclusive);
  expected<T> wanted;
  for (std::uint64_t g = 0; g < problems; ++g)
    for (std::uint64_t i = from; i < from + mine; ++i) {
      wanted.values.push_back(whole.values[g * length + i]);
      wanted.tolerance.push_back(whole.tolerance[g * length + i]);
    }
  mpi_ranks all(MPI_COMM_WORLD);
  distributed_plan scan(operation_for<T>(op), {mine, problems, inclusive}, all, {}, iterations);
  const std::size_t count = mine * problems, margin = 3;
  const array<T> input(count + margin, scan.where()), output(count + margin, scan.where());
  for (int run = 0; run < 2; ++run) {
    for (std::uint64_t g = 0; g < problems; ++g)
      for (std::uint64_t i = 0; i < mine; ++i) input[g * mine + i] = values[g * length + from + i];
    std::fill(output.begin(), output.end(), poison<T>());
    T* const target = in_place ? input.data() : output.data();
    scan.run(input.data(), target);
    const std::size_t wrong = first_difference(target, wanted);
    EXPECT_EQ(wrong, count) << "run " << run << ": " << target[wrong] << " for " << wanted.values[wrong];
    for (std::size_t i = 0; i < margin; ++i) EXPECT_TRUE(is_poison(output[count + i])) << "behind the output";
  }
  synchronize();
}

template <class T>
class spread_scans : public ::testing::Test {};
using types = ::testing::Types<std::int32_t, std::int64_t, float, double>;
TYPED_TEST_SUITE(spread_scans, types);

TYPED_TEST(spread_scans, every_operator) {
  for (const built_in op : {built_in::sum, built_in::min, built_in::max})
    for (const bool inclusive : {true, false}) {
      check_scan<TypeParam>(even(100003), 1, op, inclusive, false, 1);
      check_scan<TypeParam>(uneven(777), 5, op, inclusive, inclusive, 1);
    }
}

TYPED_TEST(spread_scans, sizes_that_fit_nothing) {
  for (const std::uint64_t length : {0, 1, 2, 5, 1000, 70001})
    for (const std::uint64_t problems : {1, 3})
      check_scan<TypeParam>(even(length), problems, built_in::sum, true, false, 0);
  check_scan<TypeParam>(uneven(1), 1, built_in::max, false, false, 0);
  check_scan<TypeParam>(uneven(0), 2, built_in::sum, false, true, 0);
  check_scan<TypeParam>(even(300000), 2, built_in::sum, true, true, 2);
}

/// Returns the message of the error on this rank; empty if there is no error.
template <class Body>
std::string complaint(Body body) {
  try {
    body();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(spread_scan, all_ranks_refuse_what_one_cannot_do) {
  mpi_ranks all(MPI_COMM_WORLD);
  const operation what = operation_for<std::int32_t>(built_in::sum);
  const bool last = ::rank() + 1 == ::ranks();
  EXPECT_NE(complaint([&] {
              distributed_plan(what, {10, last ? 2U : 1U}, all);
            }).find("number of problems"),
            std::string::npos);
  EXPECT_NE(complaint([&] {
              distributed_plan(what, {10, 1, last}, all);
            }).find("inclusive or exclusive"),
            std::string::npos);
  EXPECT_NE(complaint([&] { distributed_plan(what, {10, 1}, all, {}, 3); }).find("a power of two"), std::string::npos);
  distributed_plan scan(what, {10, 1}, all);
  const array<std::int32_t> data(20);
  const std::string said = complaint([&] { scan.run(data.data(), last ? nullptr : data.data()); });
  EXPECT_NE(said.find(last ? "null" : "refused its arrays"), std::string::npos) << said;
  EXPECT_NE(complaint([&] { scan.run(data.data(), data.data() + 5); }).find("overlap"), std::string::npos);
  std::fill(data.begin(), data.end(), 1);
  scan.run(data.data(), data.data());  // the plan works after the errors
  EXPECT_EQ(data[9], 10 * ::rank() + 10);
  synchronize();
}

TEST(spread_scan, explains_itself) {
  mpi_ranks all(MPI_COMM_WORLD);
  const distributed_plan scan(operation_for<double>(built_in::max), {1000, 2}, all);
  const std::string text = scan.explain();
  EXPECT_NE(text.find("rank " + std::to_string(::rank()) + " of " + std::to_string(::ranks())), std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 0 scans"), std::string::npos) << text;
}

}  // namespace
}  // namespace hpe::scan::testing
