#include "runtime/spread/way_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/spread/plan_comparison.h"

namespace hpe::spread {

namespace {

constexpr std::uint64_t always_measured = 8;  // the number of first launches of each way that are all measured
constexpr std::uint64_t measured_one_in = 16;
constexpr double much_slower =
    3;  // if a spread launch is slower than one device by this factor, one launch is enough for a judgement
constexpr double weight_of_latest = 0.5;
constexpr double long_launch = 3e-5;  // the shortest launch, in seconds, whose time shows the work of its kernel
constexpr double largest_scale = 1 << 20U;

}  // namespace

double way_record::took(launch_way w, const prediction& p, double seconds) {
  if (p.of(w) <= 0 || seconds <= 0) return 0;
  tries_.begin(0);
  measured& m = ways_[static_cast<std::size_t>(w)];
  const auto launches = static_cast<double>(1 + std::exchange(m.passed_over, 0));
  total_ += seconds * launches;
  const double factor = seconds / p.of(w);
  // The first launch of a way is slower than later ones, so the second launch replaces its factor.
  m.factor = m.count < launches_that_tell ? factor : m.factor + weight_of_latest * (factor - m.factor);
  ++m.count;
  m.seconds = seconds;
  if (w == launch_way::alone && !is_on_trial(w) && seconds >= long_launch)
    scale_ = std::exp2(2 * std::floor(std::log2(std::clamp(m.factor, 1.0, largest_scale)) / 2));
  return w == launch_way::alone || count(launch_way::alone) == 0
             ? 0
             : launches * (expected(launch_way::alone, p.alone_at_home) - seconds);
}

bool way_record::is_due(launch_way w) {
  measured& m = ways_[static_cast<std::size_t>(w)];
  if (m.count < always_measured || m.passed_over + 1 >= measured_one_in) return true;
  ++m.passed_over;
  return false;
}

bool way_record::may_try(double seconds) {
  if (!tries_.allows(seconds, total_)) return false;
  tries_.spend(seconds);
  return true;
}

launch_way way_record::choose(const prediction& p) {
  if (count(launch_way::spread) == 0) return launch_way::spread;
  const double alone = expected(launch_way::alone, p), spread = expected(launch_way::spread, p);
  const bool is_told = count(launch_way::spread) >= launches_that_tell || spread > much_slower * alone;
  // If no launch on one device was measured, its time is only a prediction.
  if (count(launch_way::alone) == 0 && is_told && spread > alone) return launch_way::alone;
  const launch_way faster =
      is_told && count(launch_way::alone) > 0 && alone < spread ? launch_way::alone : launch_way::spread;
  const launch_way other = faster == launch_way::alone ? launch_way::spread : launch_way::alone;
  return may_try(expected(other, p)) ? other : faster;
}

}  // namespace hpe::spread
