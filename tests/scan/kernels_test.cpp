// Tests the kernels' bodies for soft devices alone: compares the variant for every instruction set with a plain
// reference.

#include <gtest/gtest.h>

#include "hpe/kernel.h"
#include "kernels/scan.h"
#include "tests/scan/support.h"

extern "C" {
#define DECLARE(name)                                                  \
  void name(const void* parameters, const hpeTiles* tiles);            \
  void name##_baseline(const void* parameters, const hpeTiles* tiles); \
  void name##_avx2(const void* parameters, const hpeTiles* tiles);     \
  void name##_avx512(const void* parameters, const hpeTiles* tiles);
#define HPE_SCAN(type, T, operator_name, Op)    \
  DECLARE(scan_reduce_##type##_##operator_name) \
  DECLARE(scan_sums_##type##_##operator_name)   \
  DECLARE(scan_chunks_##type##_##operator_name) \
  DECLARE(scan_single_pass_##type##_##operator_name)
#include "kernels/scan.def"
#undef HPE_SCAN
}

namespace hpe::scan::testing {
namespace {

using namespace hpe::kernels;

struct variant {
  const char* name;
  bool usable;
  hpeHostKernel reduce, sums, chunks, single_pass;
};

#define VARIANTS(suffix)                                                                                         \
  {                                                                                                              \
    {"chosen", true, scan_reduce_##suffix, scan_sums_##suffix, scan_chunks_##suffix, scan_single_pass_##suffix}, \
        {"baseline",                                                                                             \
         true,                                                                                                   \
         scan_reduce_##suffix##_baseline,                                                                        \
         scan_sums_##suffix##_baseline,                                                                          \
         scan_chunks_##suffix##_baseline,                                                                        \
         scan_single_pass_##suffix##_baseline},                                                                  \
        {"avx2",                                                                                                 \
         bool(__builtin_cpu_supports("avx2")),                                                                   \
         scan_reduce_##suffix##_avx2,                                                                            \
         scan_sums_##suffix##_avx2,                                                                              \
         scan_chunks_##suffix##_avx2,                                                                            \
         scan_single_pass_##suffix##_avx2},                                                                      \
    {                                                                                                            \
      "avx512",                                                                                                  \
          __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&                             \
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"),                          \
          scan_reduce_##suffix##_avx512, scan_sums_##suffix##_avx512, scan_chunks_##suffix##_avx512,             \
          scan_single_pass_##suffix##_avx512                                                                     \
    }                                                                                                            \
  }

/// Calls a kernel for a grid of `grid` tiles, in ranges of two.
template <class Parameters>
void call(hpeHostKernel kernel, const Parameters& p, std::uint32_t grid) {
  hpeTiles tiles{0, 0, {grid, 1, 1}};
  for (std::uint64_t t = 0; t < grid; t += 2) {
    tiles.begin = t;
    tiles.end = std::min<std::uint64_t>(t + 2, grid);
    kernel(&p, &tiles);
  }
}

template <class T>
void check_variants(const std::vector<variant>& variants, built_in op) {
  const unsigned seed = fresh_seed();
  for (const auto& [length, problems] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 9}, {3, 5}, {15, 4}, {64, 3}, {1000, 3}, {4099, 2}}) {
    const std::vector<T> input = random_values<T>(length * problems, seed);
    for (const variant& v : variants)
      for (const bool inclusive : {true, false})
        for (const bool past_caches : {true, false}) {
          if (!v.usable) continue;
          SCOPED_TRACE(std::string(v.name) + ", N = " + std::to_string(length) + ", seed " + std::to_string(seed));
          const expected<T> wanted = reference(input, length, op, inclusive);
          std::vector<T> output(input.size() + 1, poison<T>());
          scan_share share{length, problems, 0, length, 100};
          std::vector<T> sums(share.chunks() * problems, poison<T>());
          scan_three_stages<T> p{input.data(), output.data(), sums.data(), share.chunks(), 0,
                                 share,        inclusive,     past_caches};
          call(v.reduce, p, 7);
          call(v.sums, p, 3);
          call(v.chunks, p, 5);
          ASSERT_EQ(first_difference(output.data(), wanted), input.size()) << "three stages";
          ASSERT_TRUE(is_poison(output.back()));

          std::fill(output.begin(), output.end(), poison<T>());
          scan_tickets tickets{};
          scan_single_pass<T> q{};
          q.input = input.data();
          q.output = output.data();
          q.tiling = make_tiling(length, problems, 128, 4, true);
          std::vector<unsigned char> totals(2 * sizeof(T) * q.tiling.count);
          q.inclusive = inclusive;
          q.launch = 7;
          q.deal = {0, 1, 1, 1, 1};
          q.stream = past_caches;
          q.tickets = &tickets;
          q.totals[0] = totals.data();
          call(v.single_pass, q, 3);
          ASSERT_EQ(first_difference(output.data(), wanted), input.size()) << "single pass";
          ASSERT_TRUE(is_poison(output.back()));
          ASSERT_EQ(tickets.next, 0U);
          ASSERT_EQ(tickets.left, 0U);
        }
  }
}

/// Checks that every tile of a batch is assigned to exactly one device, in chunks of consecutive tiles, and that
/// devices write the totals of chunks to separate memory.
void check_deal(const scan_tiling& tiling, std::uint32_t devices, std::uint32_t chunk) {
  SCOPED_TRACE(::testing::Message() << tiling.problems << " problems of " << tiling.tiles_per_problem << " tiles, "
                                    << devices << " devices, chunks of " << chunk);
  scan_deal deal = make_deal(tiling, devices, chunk);
  std::vector<unsigned> dealt(tiling.count);
  std::vector<unsigned> written(std::size_t{deal.chunks_each} * devices, devices);
  for (deal.device = 0; deal.device < devices; ++deal.device) {
    for (std::uint64_t ticket = 0;; ++ticket) {
      const dealt_tile tile = tile_for(tiling, deal, ticket);
      if (tile.last) break;
      if (tile.none) continue;
      ASSERT_LT(tile.number, tiling.count);
      ++dealt[tile.number];
      const scan_tile at = tile_of(tiling, tile.number);
      ASSERT_EQ(at.first + at.index, tile.number);
      ASSERT_EQ(at.index % chunk, tile.place);
      ASSERT_EQ(tile.chunk % devices, deal.device);
      ASSERT_EQ(tile.chunk, at.first / tiling.tiles_per_problem * deal.chunks_per_problem + at.index / chunk);
      unsigned& writer = written.at(deal.place_of_total(tile.chunk));
      ASSERT_TRUE(writer == devices || writer == deal.device);
      writer = deal.device;
    }
  }
  for (const unsigned times : dealt) ASSERT_EQ(times, 1U);
  for (std::size_t i = 0; i < written.size(); ++i)
    ASSERT_TRUE(written[i] == devices || written[i] == i / deal.chunks_each) << "total " << i;
}

TEST(scan_deal, each_tile_once_and_totals_of_devices_apart) {
  for (const std::uint64_t problems : {1, 3, 7})
    for (const std::uint64_t length : {100, 1000, 12345, 100000})
      for (const std::uint32_t devices : {2U, 3U, 4U})
        for (const std::uint32_t chunk : {1U, 5U, 64U})
          check_deal(make_tiling(length, problems, 128, 4, true), devices, chunk);
}

TEST(scan_kernels, i32) {
  check_variants<std::int32_t>(VARIANTS(i32_sum), built_in::sum);
  check_variants<std::int32_t>(VARIANTS(i32_min), built_in::min);
  check_variants<std::int32_t>(VARIANTS(i32_max), built_in::max);
}
TEST(scan_kernels, i64) {
  check_variants<std::int64_t>(VARIANTS(i64_sum), built_in::sum);
  check_variants<std::int64_t>(VARIANTS(i64_min), built_in::min);
  check_variants<std::int64_t>(VARIANTS(i64_max), built_in::max);
}
TEST(scan_kernels, f32) {
  check_variants<float>(VARIANTS(f32_sum), built_in::sum);
  check_variants<float>(VARIANTS(f32_min), built_in::min);
  check_variants<float>(VARIANTS(f32_max), built_in::max);
}
TEST(scan_kernels, f64) {
  check_variants<double>(VARIANTS(f64_sum), built_in::sum);
  check_variants<double>(VARIANTS(f64_min), built_in::min);
  check_variants<double>(VARIANTS(f64_max), built_in::max);
}

}  // namespace
}  // namespace hpe::scan::testing
