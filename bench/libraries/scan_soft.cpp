#include <fmt/core.h>

#include "apps/scan/scan_plan.h"
#include "bench/libraries/scan_peers.h"
#include "bench/libraries/soft_bars.h"

namespace hpe::bench {

namespace {

template <class T>
void against_tbb(std::vector<result>& results, unsigned repeats, const char* name) {
  constexpr std::uint64_t count = (std::uint64_t{1} << 28) / sizeof(T);
  const unsigned threads = threads_of_devices();
  scan::plan plan(scan::operation_for<T>(scan::built_in::sum), {count, 1});
  const array<T> input(count, plan.where()), output(count, plan.where());
  fill(input.data(), 0, count * sizeof(T));
  std::vector<T> from(count), to(count);
  const auto t = paired_timings(
      repeats, [] {}, [&] { tbb_sum(threads, from.data(), to.data(), count); }, [] {},
      [&] {
        plan.run(input.data(), output.data());
        synchronize();
      });
  const double ratio = t.first.median / t.second.median;
  results.push_back({fmt::format("scan, {}, {} elements, {} threads", name, count, threads), ratio, "x oneTBB",
                     ">= 1.00", ratio >= 1});
  results.push_back({"  by processor time", t.first.processor / t.second.processor, "x oneTBB", "", true});
}

}  // namespace

std::vector<result> scans_against_tbb(unsigned repeats) {
  std::vector<result> results;
  against_tbb<std::int32_t>(results, repeats, "int32");
  against_tbb<std::int64_t>(results, repeats, "int64");
  against_tbb<float>(results, repeats, "float");
  against_tbb<double>(results, repeats, "double");
  return results;
}

}  // namespace hpe::bench
