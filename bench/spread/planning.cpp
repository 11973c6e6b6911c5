// The time that decisions about launches (runtime/spread/planner.h) take on the launching thread: for a repeated
// launch, with a counter among the parameters, with arrays that swap, and with a temporary array that is allocated for
// each launch. Also measures the share of the time that planning takes if nearly every launch has a new shape.

#include <fmt/core.h>

#include <chrono>

#include "bench/common/measure.h"
#include "runtime/ptx/text/parser.h"
#include "runtime/spread/planner.h"
#include "tests/ptx/kernel_runner.h"

namespace {

using namespace hpe::spread;

constexpr double most_microseconds_again = 0.1, most_microseconds_other = 5;

/// Asks a planner how to spread launches of stencil2D(out, in, width, height) of tests/ptx/programs/single_gpu.cu over
/// four devices.
class launches {
 public:
  explicit launches(when_planned when)
      : model_(hpe::ptx::parse({hpe::ptx::test::read_file(HPE_PTX_PROGRAMS "/single_gpu.ptx")}), "stencil2D"),
        planner_(four(), {}, when) {
    for (std::size_t n = 0; n < 3; ++n) {
      arrays_[n].address = (n + 1) << 40U;
      arrays_[n].bytes = std::uint64_t{4} * 16384 * 16384;
      arrays_[n].granule = std::uint64_t{2} << 20U;
      arrays_[n].version = 1;
      arrays_[n].homes = homes_under(planner_.first_placement(arrays_[n].bytes, arrays_[n].granule), arrays_[n], 4);
    }
  }

  const decision& decide(std::size_t out, std::size_t in, std::int32_t height = 16384, std::uint32_t rows = 2048) {
    parameters_ = {arrays_[out].address, arrays_[in].address, 16384, height};
    const kernel_array* const all[] = {&arrays_[out], &arrays_[in]};
    return planner_.decide(model_, {{512, rows, 1}, {32, 8, 1}, &parameters_, sizeof parameters_}, all);
  }
  void allocate_again(std::size_t n) {
    planner_.forget(arrays_[n].address);
    ++arrays_[n].version;
  }
  [[nodiscard]] double planning_seconds() const { return planner_.planning_seconds(); }

 private:
  static machine four() {
    machine m;
    m.devices = 4;
    return m;
  }
  struct {
    std::uint64_t out = 0, in = 0;
    std::int32_t width = 0, height = 0;
  } parameters_;
  kernel_model model_;
  planner planner_;
  kernel_array arrays_[3];
};

/// Decides launches of which nearly all have a new shape. Returns the planning time beyond the allowance, as a fraction
/// of the time since the first launch. Of all such fractions during the run, the largest counts.
double share_of_plans() {
  using clock = std::chrono::steady_clock;
  launches all(when_planned::in_time);
  const auto begin = clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
  double worst = 0;
  for (std::uint32_t n = 0; passed() < 1.5; ++n) {
    static_cast<void>(all.decide(0, 1, 16384, 2048 - n % 2000));
    worst = std::max(worst, (all.planning_seconds() - planner::allowance) / passed());
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned room = 1;
  const auto arguments = hpe::bench::parse(
      argc, argv,
      "the time of decisions about launches over several devices: repeated, and with other numbers or arrays",
      {{"--room", "FACTOR", "multiply the targets by FACTOR, on a machine that other programs use (1)",
        hpe::bench::to_whole(room, 1, 100)}});
  constexpr int count = 20000;
  launches all(when_planned::at_once);
  const auto microseconds = [&](const auto& launch) {
    launch(0);
    const hpe::bench::timing t = hpe::bench::timed(
        arguments.repeats, [] {},
        [&] {
          for (int n = 1; n <= count; ++n) launch(n);
        });
    return t.processor * 1e6 / count;
  };
  const double again = microseconds([&](int) { static_cast<void>(all.decide(0, 1)); });
  const double swapped = microseconds([&](int n) { static_cast<void>(all.decide(n & 1, 1 - (n & 1))); });
  const double counter = microseconds([&](int n) { static_cast<void>(all.decide(0, 1, 16384 - n % 4096)); });
  const double temporary = microseconds([&](int) {
    all.allocate_again(2);
    static_cast<void>(all.decide(2, 1));
  });
  const double share = share_of_plans();
  const auto line = [&](const char* what, double measured, const char* unit, double most) {
    return hpe::bench::result{what, measured, unit, fmt::format("<= {:g}", most * room), measured <= most * room};
  };
  const std::vector<hpe::bench::result> results{
      line("launch seen before", again, "us", most_microseconds_again),
      line("launch with swapped arrays", swapped, "us", most_microseconds_again),
      line("launch with other numbers", counter, "us", most_microseconds_other),
      line("launch with an array that is new", temporary, "us", most_microseconds_other),
      line("planning time after the first 100 ms, as a share of the run time, if each launch has a new shape",
           share * 100, "%", planner::share * 100),
  };
  return hpe::bench::report("Decisions about launches, one thread, processor time", results, arguments);
}
